// Formats numbers, times and rates for people.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const brief = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (value) => whole.format(value);
export const compact = (value) => brief.format(value);

// Returns a rate such as 0, 0.3, 12, 1,234 or 20.5K.
export function rate(value) {
  if (value == null) return "–";
  if (value === 0) return "0";
  if (value < 0.05) return "<0.1";
  if (value < 9.95) return tenth.format(value);
  return value < 99_999.5 ? whole.format(value) : brief.format(value);
}

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${value < 10 && unit > 0 ? tenth.format(value) : whole.format(value)} ${units[unit]}`;
}

// Returns a duration in microseconds as text: "50 µs", "2.5 ms" or "1.2 s".
export function micros(value) {
  if (value == null) return "–";
  if (value < 1000) return `${whole.format(value)} µs`;
  if (value < 1_000_000) return `${(value / 1000).toFixed(value < 10_000 ? 1 : 0)} ms`;
  return `${(value / 1_000_000).toFixed(1)} s`;
}

// Returns a duration in milliseconds as text in its largest units: "45 s", "12 min", "3 h 20 min", "5 days".
export function span(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 100) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 100) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

// Returns the local time of day, and also the date unless the time is today.
export function clock(milliseconds) {
  const at = new Date(milliseconds);
  const time = at.toLocaleTimeString("en-GB");
  const today = new Date().toDateString() === at.toDateString();
  return today ? time : `${at.toLocaleDateString("en-CA")} ${time}`;
}

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
