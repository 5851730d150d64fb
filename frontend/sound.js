// What is heard: how loud the caller and the agent are, and through which devices.

import { element } from './memory-panel.js';

const ears = {};
let audio;

/** To be called within a click, since browsers start no sound without one. */
export function openEars() {
  audio ??= globalThis.AudioContext && new AudioContext();
  audio?.resume().catch(() => {});
}

/** How loud a MediaStreamTrack is right now, 0 to 1, falling more slowly than it rises; `name` keeps its place. */
export function loudness(name, track) {
  if (!track || !audio) return 0;
  if (ears[name]?.track !== track) {
    ears[name]?.source.disconnect();
    const analyser = audio.createAnalyser();
    analyser.fftSize = 512;
    const source = audio.createMediaStreamSource(new MediaStream([track]));
    source.connect(analyser);
    ears[name] = { track, source, analyser, samples: new Float32Array(analyser.fftSize), value: 0 };
  }
  const ear = ears[name];
  ear.analyser.getFloatTimeDomainData(ear.samples);
  const power = ear.samples.reduce((sum, sample) => sum + sample * sample, 0) / ear.samples.length;
  const target = Math.min(1, Math.sqrt(power) * 6);
  ear.value += (target - ear.value) * (target > ear.value ? 0.5 : 0.15);
  return ear.value;
}

/** Fills a select with the devices of its kind (its id), the `chosen` one selected. Asks for no permission. */
export async function listDevices(select, chosen) {
  const all = await navigator.mediaDevices?.enumerateDevices().catch(() => []) ?? [];
  const found = all.filter((device) => device.kind === select.id);
  const name = select.id === 'audioinput' ? 'Microphone' : 'Speaker';
  const shown = found.length ? found : [{ deviceId: '', label: 'None found' }];
  // Without permission the browser tells that there is one, but not which.
  select.replaceChildren(...shown.map(({ deviceId, label }, index) =>
    element('option', { value: deviceId, textContent: label || `${name} ${index + 1}`, selected: deviceId === chosen })));
  select.disabled = !found.some((device) => device.deviceId);
}
