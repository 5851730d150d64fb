// The words of one call: rows in the order in which they were opened, from typed text and the agent's text streams.

export const LONGEST_MESSAGE = 1000;
const LONGEST_ROW = 20_000;
const STAYS_OPEN = 500; // milliseconds

/**
 * A row is {id, who, text, final} with `who` one of caller, agent, note; and where they apply `interrupted`,
 * `failed` (typed, not sent), `recalled` ({facts, waited in milliseconds}), for notes `kind` and `facts`.
 * `changed(row)` is called for each new row and each change, until `close`.
 */
export class Words {
  rows = new Map();
  #clock;
  #changed;
  #serial = 0;
  #speaking = false;
  #openReply; // the row that the agent is writing
  #guessed; // a row marked as interrupted only because it stayed open
  #recalled; // waits for the reply that it was recalled for
  #takenBack = new Set();
  #closed = false;

  constructor({ clock, changed }) {
    this.#clock = clock;
    this.#changed = changed;
  }

  /** A typed message, which nobody echoes. Returns its id. */
  typed(text) {
    if (this.#speaking) this.#set(this.#openReply, { interrupted: true });
    return this.#set(`typed-${++this.#serial}`, { who: 'caller', text, final: true });
  }

  notSent(id) {
    this.#set(id, { failed: true });
  }

  note(kind, facts) {
    const news = kind === 'forgotten' ? facts.filter(({ id }) => !this.#takenBack.has(id)) : facts;
    if (news.length) this.#set(`note-${++this.#serial}`, { who: 'note', kind, facts: news, final: true });
  }

  /** The caller takes back what was just saved: its row says so, and that the agent then forgets it is no news. */
  takeBack(id) {
    this.#takenBack.add(id);
  }

  /** Facts for the agent's next reply. */
  recalled(facts, waited) {
    this.#recalled = { facts, waited };
  }

  /**
   * The agent started or stopped speaking. Nothing in a stream says that a reply was cut, but a finished one
   * closes before the agent falls silent, and a cut one only when the interrupting words are a turn.
   */
  agentSpeaks(speaking) {
    if (speaking === this.#speaking) return;
    this.#speaking = speaking;
    if (speaking) {
      // It took the caller's cough for words, and goes on.
      if (this.#guessed === this.#openReply) this.#set(this.#guessed, { interrupted: false });
      return;
    }
    const id = this.#openReply;
    this.#clock.setTimeout(() => {
      if (!id || id !== this.#openReply || this.#speaking) return;
      this.#guessed = id;
      this.#set(id, { interrupted: true });
    }, STAYS_OPEN);
  }

  /** Follows one text stream to its end: the caller's replace what their row says, the agent's add to it. */
  async follow(reader, who, from) {
    const segment = reader.info.attributes?.['lk.segment_id'];
    if (!segment) return;
    const id = `${from}-${segment}`;
    const stream = ++this.#serial;
    let text = this.#open(id, who, stream);
    // An older update of the same words may still arrive after a newer one.
    const latest = () => this.rows.get(id).stream === stream;
    try {
      for await (const chunk of reader) {
        text = (text + chunk).slice(0, LONGEST_ROW);
        if (latest()) this.#set(id, { text });
      }
    } catch { /* cut off: what has arrived stands */ }
    if (this.#openReply === id) this.#openReply = undefined;
    const final = who === 'agent' || reader.info.attributes['lk.transcription_final'] === 'true';
    if (final) this.#set(id, { final });
  }

  /** The call is over: nothing changes any more. */
  close() {
    for (const row of this.rows.values()) if (!row.final) this.#set(row.id, { final: true });
    this.#closed = true;
  }

  #open(id, who, stream) {
    const known = this.rows.get(id);
    if (who === 'agent') {
      if (this.#openReply !== id) this.#set(this.#openReply, { interrupted: true });
      this.#openReply = id;
      this.#set(id, { who, stream, final: false, ...(this.#recalled && { recalled: this.#recalled }) });
      this.#recalled = undefined;
      return known?.text ?? '';
    }
    if (!known && !this.#speaking) this.#set(this.#openReply, { interrupted: true });
    this.#set(id, { who, stream });
    return '';
  }

  #set(id, change) {
    if (!id || this.#closed) return id;
    const row = this.rows.get(id) ?? { id, text: '', final: false };
    this.rows.set(id, Object.assign(row, change));
    this.#changed(row);
    return id;
  }
}
