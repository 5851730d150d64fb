// A livekit-client that a test moves by hand. `library.test.js` compares its names and numbers with the real one.

export const names = {
  RoomEvent: {
    Disconnected: 'disconnected', SignalReconnecting: 'signalReconnecting', Reconnecting: 'reconnecting', Reconnected: 'reconnected',
    ParticipantConnected: 'participantConnected', ParticipantActive: 'participantActive', ParticipantDisconnected: 'participantDisconnected',
    ParticipantAttributesChanged: 'participantAttributesChanged', TrackSubscribed: 'trackSubscribed', TrackUnsubscribed: 'trackUnsubscribed',
    AudioPlaybackStatusChanged: 'audioPlaybackChanged', TrackMuted: 'trackMuted', TrackUnmuted: 'trackUnmuted',
  },
  ConnectionErrorReason: { NotAllowed: 0, ServerUnreachable: 1, InternalError: 2, Timeout: 5, WebSocket: 6 },
  DisconnectReason: { CLIENT_INITIATED: 1, DUPLICATE_IDENTITY: 2, SERVER_SHUTDOWN: 3, PARTICIPANT_REMOVED: 4, ROOM_DELETED: 5, JOIN_FAILURE: 7, ROOM_CLOSED: 10, UNKNOWN_REASON: 0 },
};
const E = names.RoomEvent;

/** A text stream as the library hands it to a handler: `write` and `close` move it along. */
export class Stream {
  constructor(attributes = {}) {
    this.info = { attributes };
    this.chunks = [];
    this.wake = () => {};
  }

  write(text) { this.chunks.push(text); this.wake(); return this; }
  close(attributes) { Object.assign(this.info.attributes, attributes); this.done = true; this.wake(); return this; }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (this.chunks.length) yield this.chunks.shift();
      if (this.done) return;
      await new Promise((resolve) => { this.wake = resolve; });
    }
  }

  async readAll() {
    let all = '';
    for await (const chunk of this) all += chunk;
    return all;
  }
}

export class RpcError extends Error {
  constructor(code) { super(`rpc ${code}`); this.code = code; }
}

export function agent(identity = 'agent-1', attributes = {}) {
  return { identity, isAgent: true, isActive: true, attributes: { 'lk.agent.state': 'listening', 'memory.state': 'on', 'memory.recorded': 'false', 'memory.store': 'embedded', ...attributes }, audioTrackPublications: new Map() };
}

class FakeRoom {
  name = 'room-1';
  canPlaybackAudio = true;
  remoteParticipants = new Map();
  handlers = {};
  streams = {};
  sent = [];
  rpcs = [];
  switched = [];

  constructor(options, world) {
    this.options = options;
    this.world = world;
    world.rooms.push(this);
    const room = this;
    this.localParticipant = {
      identity: 'caller-1',
      async createTracks() {
        const track = { stopped: false, stop() { this.stopped = true; }, mediaStreamTrack: world.audioTrack };
        world.tracks.push(track);
        await world.microphone();
        return [track];
      },
      async publishTrack(track) { room.published = { track }; },
      async setMicrophoneEnabled(on) {
        if (on) await world.microphone();
        room.emit(on ? E.TrackUnmuted : E.TrackMuted, room.published, room.localParticipant);
      },
      getTrackPublication: () => room.published,
      async sendText(text, { topic }) {
        if (world.sendFails) throw new Error('not sent');
        room.sent.push([topic, text]);
      },
      performRpc: ({ destinationIdentity, method, payload }) => {
        room.rpcs.push([destinationIdentity, method, payload]);
        return world.rpc(method, payload && JSON.parse(payload), destinationIdentity);
      },
    };
  }

  on(event, fn) { (this.handlers[event] ??= []).push(fn); return this; }
  emit(event, ...given) { for (const fn of this.handlers[event] ?? []) fn(...given); }
  registerTextStreamHandler(topic, fn) { this.streams[topic] = fn; }
  async connect(url, token) { this.connectedTo = [url, token]; await this.world.connect(this); }
  async disconnect() { this.left = true; }
  async startAudio() { this.canPlaybackAudio = true; this.emit(E.AudioPlaybackStatusChanged); }
  async switchActiveDevice(kind, id) { this.switched.push([kind, id]); if (this.world.deviceFails) throw new Error('no such device'); }

  // What happens to it.

  join(who) { this.remoteParticipants.set(who.identity, who); this.emit(E.ParticipantConnected, who); return who; }
  reached(who) { this.emit(E.ParticipantActive, who); who.isActive = true; } // in this order, as the library does
  leave(who) { this.remoteParticipants.delete(who.identity); this.emit(E.ParticipantDisconnected, who); }
  says(who, attributes) { Object.assign(who.attributes, attributes); this.emit(E.ParticipantAttributesChanged, attributes, who); }
  disconnected(reason) { this.emit(E.Disconnected, reason); }

  /** Opens a stream on a topic, as if `identity` had; returns it to be written to. */
  stream(topic, identity, attributes) {
    const stream = new Stream(attributes);
    this.streams[topic](stream, { identity });
    return stream;
  }

  words(identity, segment, text, final = false) {
    return this.stream('lk.transcription', identity, { 'lk.segment_id': segment, 'lk.transcription_final': String(final) }).write(text).close();
  }

  memoryEvent(identity, event) {
    return this.stream('memory.events', identity).write(typeof event === 'string' ? event : JSON.stringify(event)).close();
  }
}

/** The namespace, and the switches a test may turn: `connect`, `microphone`, `rpc` are what these do. */
export function fakeLivekit() {
  const world = {
    rooms: [],
    tracks: [],
    connect: async () => {},
    microphone: async () => {},
    rpc: async (method, payload) => (method === 'memory.ping' ? 'pong' : JSON.stringify(method === 'memory.pause' ? { state: payload.paused ? 'paused' : 'on' } : { ok: true })),
    get room() { return world.rooms.at(-1); },
  };
  const library = {
    ...names,
    isBrowserSupported: () => !world.oldBrowser,
    setLogLevel: (level) => { world.logLevel = level; },
    Room: class extends FakeRoom { constructor(options) { super(options, world); } },
  };
  return { library, world };
}
