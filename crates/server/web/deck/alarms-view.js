// <qd-deck-alarms>: alert rules that hold, with what to do about each, and lifting an alarm.

import { fill, h } from '../shared/dom.js';
import { HumanTime } from '../shared/human-time.js';
import { moment } from '../shared/time.js';
import { get, send } from './api.js';

export class AlarmsView extends HTMLElement {
  #list = h('div', { 'data-testid': 'alarms' });
  #notice = h('p', { class: 'quiet', role: 'status' });

  connectedCallback() {
    if (!this.#list.isConnected) this.append(this.#notice, this.#list);
  }

  async refresh() {
    const alarms = (await get('alarms')).alarms.filter(({ state }) => state !== 'pending');
    if (alarms.length === 0) return fill(this.#list);
    const head = ['Alarm', 'Since', 'What to do', ''].map((name) => h('th', { scope: 'col' }, name));
    fill(
      this.#list,
      h('h2', {}, 'Alarms'),
      h(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Alarms' },
        h(
          'table',
          {},
          h('thead', {}, h('tr', {}, ...head)),
          h('tbody', {}, ...alarms.map((alarm) => this.#row(alarm))),
        ),
      ),
    );
  }

  /** @param {Api.Alarm} alarm */
  #row(alarm) {
    const labels = Object.entries(alarm.labels).map(([name, value]) => `${name} ${value}`);
    const words = [alarm.severity, ...labels, ...(alarm.state === 'lifted' ? ['lifted'] : [])].join(' · ');
    const lift = h(
      'button',
      { 'aria-label': `Lift: ${alarm.summary}`, 'data-testid': 'lift-alarm', onclick: () => this.#lift(alarm) },
      'Lift',
    );
    return h(
      'tr',
      { 'data-testid': 'alarm' },
      h('th', { scope: 'row' }, alarm.summary, h('div', { class: 'quiet' }, words)),
      h('td', {}, new HumanTime().show(new Date(alarm.sinceMs), moment)),
      h('td', {}, alarm.remedy),
      h('td', {}, ...(alarm.state === 'firing' ? [lift] : [])),
    );
  }

  /** @param {Api.Alarm} alarm */
  async #lift({ id, summary }) {
    try {
      await send('POST', 'alarms/lift', { id });
      this.#notice.textContent = `Lifted: ${summary}. It is quiet until it has ended and begins again.`;
    } catch (error) {
      this.#notice.textContent = error instanceof Error ? error.message : String(error);
    }
    await this.refresh();
  }
}

customElements.define('qd-deck-alarms', AlarmsView);
