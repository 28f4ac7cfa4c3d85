// Numbers as text.

export const whole = (number) => Math.round(number).toLocaleString("en");

export const amount = (number) => {
  const size = Math.abs(number);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return number.toExponential(1);
  return size >= 1000 ? whole(number) : String(Number(number.toPrecision(3)));
};

export const duration = (seconds) => {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
};
