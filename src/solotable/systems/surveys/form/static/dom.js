// Elements without a framework: h('p', {class: 'small'}, 'text', child). Texts are never parsed as HTML.

export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'value') element.value = value;
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

function svg(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** A ring that shows how much is done, with a tick when all of it is. */
export function dial(done, total) {
  const ring = {cx: 18, cy: 18, r: 15};
  const parts = [svg('circle', {class: 'track', ...ring})];
  if (done) parts.push(svg('circle', {class: 'done', ...ring, pathLength: total, 'stroke-dasharray': `${done} ${total}`}));
  if (total && done === total) parts.push(svg('path', {class: 'tick', d: 'M12 18.5l4.2 4.2L24.5 14'}));
  return h('span', {class: 'dial', 'aria-hidden': 'true'}, svg('svg', {viewBox: '0 0 36 36'}, ...parts));
}

const KINDS = {Excellent: 'good', Good: 'good', Fair: 'fair', Poor: 'poor'};

export function badge(condition) {
  return condition ? h('span', {class: `badge ${KINDS[condition] ?? 'none'}`}, condition) : null;
}

/** Put new children into an element, without touching those that are equal: focus and typing stay. */
export function replace(element, ...children) {
  const wanted = children.flat().filter(Boolean);
  const isSame = wanted.length === element.childNodes.length
    && wanted.every((child, at) => child.isEqualNode?.(element.childNodes[at]));
  if (!isSame) element.replaceChildren(...wanted);
}

export const clock = time => new Date(time).toLocaleTimeString([], {hour: '2-digit', minute: '2-digit'});
export const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;
