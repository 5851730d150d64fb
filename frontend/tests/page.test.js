import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';

const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8');
const scripts = ['app.js', 'session.js', 'words.js', 'problems.js', 'transcript.js', 'sound.js', 'memory-panel.js'];
const files = ['index.html', 'styles.css', ...scripts];

test('The token server finds the line that it may exchange for another source', () => {
  assert.ok(read('index.html').includes('<script src="/static/vendor/livekit-client.umd.min.js" defer></script>'));
});

test('The page needs no inline script, style or handler', () => {
  const page = read('index.html');
  assert.doesNotMatch(page, /<style|\sstyle=|\son\w+=|javascript:/i);
  for (const [, attributes, text] of page.matchAll(/<script([^>]*)>([^]*?)<\/script>/g)) {
    assert.match(attributes, /src="\/static\//);
    assert.equal(text, '');
  }
});

test('Words reach the page as text only', () => {
  for (const name of scripts) assert.doesNotMatch(read(name), /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function/, name);
});

test('Nothing is written to the console, where a token could end up', () => {
  for (const name of scripts) assert.doesNotMatch(read(name), /console\./, name);
});

test('The page loads from its own server only', () => {
  for (const name of files) assert.doesNotMatch(read(name).replaceAll('http://www.w3.org/2000/svg', ''), /https?:\/\/\w/, name);
});

test('Every id that the screen looks for is in the page, once', () => {
  const page = read('index.html');
  const wanted = [...scripts.map(read).join('').matchAll(/(?:\$|getElementById)\('([\w-]+)'\)/g)].map(([, id]) => id);
  assert.ok(wanted.length > 20);
  for (const id of new Set(wanted)) assert.equal(page.split(`id="${id}"`).length - 1, 1, id);
});

test('Without the call library the page is small on the wire', () => {
  const bytes = files.reduce((sum, name) => sum + gzipSync(read(name)).length, 0);
  assert.ok(bytes < 40_000, `${bytes} bytes compressed`);
});
