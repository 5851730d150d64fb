// What reaches the loudspeaker: recorded, with the moments at which it was loud. Times are performance.now().
globalThis.ear = {
  clicked: 0, // the last press of the main button
  loud: [], // every 20 ms of sound that is no silence
  opened: [], // the microphone tracks that the page was given

  // What was heard since the agent came, as WebM in base64.
  async recording() {
    await new Promise((resolve) => { this.recorder.onstop = resolve; this.recorder.stop(); });
    const bytes = new Uint8Array(await new Blob(this.parts).arrayBuffer());
    return btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ''));
  },

  listen(stream) {
    this.parts = [];
    this.recorder = new MediaRecorder(stream);
    this.recorder.ondataavailable = ({ data }) => this.parts.push(data);
    this.recorder.start();
    const context = new AudioContext();
    const analyser = context.createAnalyser();
    context.createMediaStreamSource(stream).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    setInterval(() => {
      analyser.getFloatTimeDomainData(samples);
      if (samples.some((sample) => Math.abs(sample) > 0.02)) this.loud.push(performance.now());
    }, 20);
  },
};

addEventListener('click', ({ target }) => { if (target.closest('#main')) ear.clicked = performance.now(); }, true);

new MutationObserver((changes) => {
  for (const { addedNodes } of changes) for (const node of addedNodes) if (node.localName === 'audio') ear.listen(node.srcObject);
}).observe(document, { childList: true, subtree: true });

if (navigator.mediaDevices) {
  const { getUserMedia } = navigator.mediaDevices;
  navigator.mediaDevices.getUserMedia = async function (...wanted) {
    const stream = await getUserMedia.apply(this, wanted);
    ear.opened.push(...stream.getAudioTracks());
    return stream;
  };
}
