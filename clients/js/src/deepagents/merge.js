// Changes of metadata that were made by several programs at the same time.

const isObject = (v) => typeof v === "object" && v !== null && !Array.isArray(v);
const own = (v, key) => (isObject(v) && Object.hasOwn(v, key) ? v[key] : undefined);

/**
 * Applies to metadata what is different between base and changed. A number in the member `usage` is a sum, which others
 * may have increased; anything else that was changed is as in changed.
 */
export function merged(base, changed, now, sums) {
  if (typeof changed === "number" && sums) return changed - (typeof base === "number" ? base : 0) + (typeof now === "number" ? now : 0);
  if (!isObject(changed) || !isObject(now)) return same(base, changed) ? now : changed;
  const all = {};
  for (const key of new Set([...Object.keys(now), ...Object.keys(changed)])) {
    const [was, is, others] = [own(base, key), own(changed, key), own(now, key)];
    const value = is === undefined ? (was === undefined ? others : undefined) : merged(was, is, others, sums ?? key === "usage");
    if (value !== undefined) Object.defineProperty(all, key, { value, enumerable: true, writable: true, configurable: true });
  }
  return all;
}

const same = (a, b) => {
  if (!isObject(a) && !Array.isArray(a)) return a === b;
  if (!isObject(b) && !Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return Array.isArray(a) === Array.isArray(b) && keys.length === Object.keys(b).length && keys.every((k) => Object.hasOwn(b, k) && same(a[k], b[k]));
};
