// The transcript on the screen. Text only ever arrives as text, never as markup.

import { ago, element } from './memory-panel.js';

/** Facts as a list, each with the time it is from where that is known. */
export function factList(facts) {
  return element('ul', {}, ...facts.map((fact) => element('li', { dir: 'auto' }, fact.text, element('small', { textContent: ` ${ago(fact.when)}` }))));
}

/** Draws rows into `log`, and tells `announce` the final ones, for those who listen to the page. */
export class Transcript {
  #drawn = new Map();
  #following = true; // somebody who reads further up is not pulled down

  /** `undo(fact)` takes back a fact that was just saved, and resolves to whether it is gone. */
  constructor({ log, announce, undo }) {
    Object.assign(this, { log, announce, undo });
    log.addEventListener('scroll', () => { this.#following = log.scrollHeight - log.scrollTop - log.clientHeight < 60; });
    // What stands above or below it may grow and leave it less room.
    new ResizeObserver(() => { if (this.#following) this.toEnd(); }).observe(log);
  }

  clear() {
    this.#drawn.clear();
    this.#following = true;
    this.log.replaceChildren();
  }

  toEnd() {
    this.#following = true;
    this.log.scrollTop = this.log.scrollHeight;
  }

  draw(row) {
    let drawn = this.#drawn.get(row.id);
    if (!drawn) {
      drawn = row.who === 'note' ? this.#note(row) : this.#words(row);
      this.#drawn.set(row.id, drawn);
      this.log.append(drawn.element);
      this.log.hidden = false;
    }
    if (row.who !== 'note') this.#update(drawn, row);
    if (this.#following) this.toEnd();
  }

  #words(row) {
    const said = element('p', { className: 'said', dir: 'auto' });
    const speaker = element('span', { className: 'unseen', textContent: row.who === 'caller' ? 'You: ' : 'Agent: ' });
    const mark = element('small', { className: 'mark' });
    return { said, mark, element: element('div', { className: `row ${row.who}` }, speaker, said, mark) };
  }

  #update(drawn, row) {
    drawn.element.hidden = !row.text.trim();
    drawn.element.classList.toggle('open', !row.final);
    if (drawn.said.textContent !== row.text) drawn.said.textContent = row.text;
    drawn.mark.textContent = row.failed ? 'Not sent. Try again.' : row.interrupted ? 'interrupted' : '';
    if (row.recalled && !drawn.chip) {
      const { facts, waited } = row.recalled;
      drawn.chip = element('details', {}, element('summary', { textContent: `recalled ${facts.length} · waited ${waited} ms` }), factList(facts));
      drawn.element.append(drawn.chip);
    }
    if (row.final && !drawn.announced && row.text.trim()) {
      drawn.announced = true;
      if (!row.id.startsWith('typed')) this.announce(`${row.who === 'caller' ? 'You' : 'Agent'}: ${row.text}`);
    }
  }

  #note({ kind, facts }) {
    const lines = facts.map((fact) => {
      const line = element('p', {}, `${kind}: `, element('bdi', { textContent: fact.text }), ' ');
      if (kind === 'saved' && fact.id) line.append(this.#undoButton(fact, line));
      return line;
    });
    return { element: element('div', { className: 'row note' }, ...lines) };
  }

  #undoButton(fact, line) {
    const button = element('button', { type: 'button', className: 'quiet', textContent: 'Undo' });
    button.setAttribute('aria-label', `Undo: do not keep “${fact.text}”`);
    button.onclick = async () => {
      button.disabled = true;
      if (await this.undo(fact)) line.replaceChildren('not kept: ', element('bdi', { textContent: fact.text }));
      else button.disabled = false;
    };
    return button;
  }
}
