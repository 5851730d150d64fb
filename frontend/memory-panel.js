// What is remembered about this browser's person: shown, forgotten, exported. Works with and without a call.

import { Problem, request } from './problems.js';

/** Makes an element. Text only ever arrives as text, never as markup. */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const WORKING = 'One moment…';

const STEPS = [['year', 31_536_000], ['month', 2_592_000], ['week', 604_800], ['day', 86_400], ['hour', 3600], ['minute', 60]];

/** "3 weeks ago", or "" for a time that is not known. */
export function ago(when, now = Date.now()) {
  const seconds = (now - Date.parse(when)) / 1000;
  if (!(seconds >= 0)) return Number.isNaN(seconds) ? '' : 'just now';
  const [unit, length] = STEPS.find(([, step]) => seconds >= step) ?? [];
  return unit ? new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(-Math.floor(seconds / length), unit) : 'just now';
}

function count(number, one, more = `${one}s`) {
  return `${number} ${number === 1 ? one : more}`;
}

function knownBy(fact) {
  if (fact.source === 'remembered') return 'you asked me to remember';
  return fact.inferred ? 'worked out from what you said' : 'you said';
}

/**
 * `forgetInCall(what)` has a running call forget and gives its answer or null, `onFacts(facts)` is told what there
 * is, `busy()` says whether a call is open.
 */
export class MemoryPanel {
  facts = [];
  #before = new Set();
  #asking; // the fact, or the action, whose question stands open
  #busy = false;
  #failed = false; // whether the note says that the list could not be loaded
  forgotten = new Set(); // the texts of what was forgotten here since `settle`

  constructor({ fetch, forgetInCall, onFacts, busy }) {
    Object.assign(this, { fetch, forgetInCall, onFacts, busy });
    this.note = document.getElementById('memory-note');
    this.list = document.getElementById('facts');
    this.actions = document.getElementById('memory-actions');
    this.#draw();
  }

  /** Facts that were not there before are marked as new until `settle` is called. */
  async load() {
    try {
      const answer = await request(this.fetch, 'GET', '/api/memories');
      this.facts = Array.isArray(answer?.facts) ? answer.facts.filter((fact) => typeof fact?.text === 'string') : [];
      this.store = answer?.store;
      if (!this.loaded) this.settle();
      this.loaded = true;
      if (this.#failed) this.#say(''); // what an action has said stays
    } catch (problem) {
      this.#say(problem);
      this.#failed = true;
    }
    this.#draw();
    this.onFacts(this.facts);
  }

  settle() {
    this.#before = new Set(this.facts.map((fact) => fact.text));
    this.forgotten.clear();
  }

  /** The facts that came since `settle`. */
  get news() {
    return this.facts.filter((fact) => !this.#before.has(fact.text));
  }

  /** Forgets one fact; true when it is gone. */
  async forget(fact) {
    try {
      const answer = await this.#delete({ id: fact.id }, `/api/memories/${encodeURIComponent(fact.id)}`);
      if (!answer?.forgotten?.length) throw new Problem('Nothing was forgotten: it was no longer there.', '');
      this.forgotten.add(fact.text);
      await this.load();
      return true;
    } catch (problem) {
      await this.load(); // a part may be gone
      this.#say(problem);
      return false;
    }
  }

  async #forgetAll() {
    const answer = await this.#delete({ everything: true }, '/api/memories', { confirm: true });
    const { memories = 0, documents = 0 } = answer?.removed ?? {};
    for (const fact of this.facts) this.forgotten.add(fact.text);
    await this.load();
    const inCall = this.busy() ? ' Until this call ends, the agent still has in mind what was said in it.' : '';
    this.#say(`Forgotten: ${count(memories, 'fact')}, ${count(documents, 'conversation or note', 'conversations and notes')}.${inCall}`);
  }

  /** Done by the agent of a running call, or by the server where the agent does not do it. */
  async #delete(what, path, body) {
    const inCall = await this.forgetInCall(what);
    return inCall?.removed || inCall?.forgotten?.length ? inCall : request(this.fetch, 'DELETE', path, body);
  }

  async #export() {
    const answer = await this.fetch('/api/memories/export').catch(() => null);
    if (!answer?.ok) throw new Problem('The export did not work.', 'Try again.');
    const link = element('a', { href: URL.createObjectURL(await answer.blob()), download: 'memories.json' });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  async #reset() {
    const answer = await request(this.fetch, 'POST', '/api/session/reset', {});
    this.loaded = null;
    await this.load();
    this.#say(answer?.message ?? 'You are someone new here now.');
  }

  #say(what) {
    this.#failed = false;
    this.note.textContent = what instanceof Error ? [what.message, what.next].filter(Boolean).join(' ') : what;
  }

  /** Draws the panel anew, and keeps the focus where it was. */
  #draw() {
    const focused = document.activeElement?.closest?.('.memory') && document.activeElement.dataset.key;
    const empty = this.loaded && !this.facts.length;
    const news = new Set(this.news);
    this.list.replaceChildren(...this.facts.map((fact) => this.#item(fact, news.has(fact))));
    if (empty) this.list.append(element('li', { className: 'none', textContent: 'Nothing yet. Tell me something in a call and it will show up here.' }));
    this.actions.replaceChildren(
      // Also where no fact is listed: what was said may be stored, and not learned from yet.
      ...(this.loaded
        ? [this.#button('Export', 'export', () => this.#run(() => this.#export())),
           this.#asked('all', 'Forget everything', 'Forget all of this, and every conversation it came from?', 'Forget all', () => this.#forgetAll())]
        : []),
      this.#asked('reset', 'Start as someone new', 'What is stored stays, but this browser will not find it again. Forget everything first to remove it.', 'Start anew', () => this.#reset(), this.busy()),
    );
    if (focused) (document.querySelector(`[data-key="${CSS.escape(focused)}"]`) ?? document.getElementById('memory-title')).focus();
  }

  redraw() {
    this.#draw();
  }

  #item(fact, isNew) {
    const meta = [knownBy(fact), ago(fact.when)].filter(Boolean).join(' · ');
    const about = element('p', { className: 'fine' }, isNew ? element('em', { textContent: 'new' }) : '', meta);
    if (fact.when) about.title = new Date(fact.when).toLocaleString();
    const item = element('li', {}, element('p', { dir: 'auto', textContent: fact.text }), about);
    if (fact.id) item.append(this.#asked(fact.id, 'Forget', 'Forget this for good?', 'Forget', () => this.forget(fact), false, fact.text));
    return item;
  }

  /** A button that asks once, in its own place. */
  #asked(key, label, question, yes, act, disabled = false, about = '') {
    if (this.#asking !== key) {
      const button = this.#button(label, key, () => this.#ask(key));
      if (about) button.setAttribute('aria-label', `${label}: ${about}`);
      return Object.assign(button, { disabled, title: disabled ? 'End the call first' : '' });
    }
    const sure = this.#button(yes, `${key}-yes`, () => { this.#asking = null; return this.#run(act); });
    sure.className = 'danger';
    return element('div', { className: 'ask' }, element('p', { textContent: question }), sure, this.#button('Keep', `${key}-no`, () => this.#ask(null, key)));
  }

  #ask(key, back) {
    this.#asking = key;
    this.#draw();
    this.#focus(key ? `${key}-no` : back);
  }

  #focus(key) {
    document.querySelector(`.memory [data-key="${CSS.escape(key)}"]`)?.focus();
  }

  async #run(act) {
    if (this.#busy) return;
    this.#busy = true;
    this.#say(WORKING);
    this.#draw();
    try {
      await act();
      if (this.note.textContent === WORKING) this.#say('');
    } catch (problem) {
      await this.load();
      this.#say(problem);
    }
    this.#busy = false;
    this.#draw();
  }

  #button(label, key, onclick) {
    const button = element('button', { type: 'button', className: 'quiet', textContent: label, onclick });
    button.dataset.key = key;
    return button;
  }
}
