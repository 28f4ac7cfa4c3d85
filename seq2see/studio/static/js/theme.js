// Light or dark: the system's choice, until the switch is used; the browser keeps that choice.

const KEY = "seq2see-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";

function kept() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // browsers that keep nothing still have a theme
  }
}

function keep(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // as above
  }
}

// Canvases are drawn, not styled: the event "theme" on the document tells them to draw again.
export function themeSwitch(button) {
  const show = () => {
    button.setAttribute("aria-pressed", String(isDark()));
    button.title = isDark() ? "Light colours" : "Dark colours";
    document.dispatchEvent(new Event("theme"));
  };
  const chosen = kept();
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    keep(theme);
    show();
  });
  system.addEventListener("change", show);
  show();
}

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Paint again whenever colours change, for as long as the element is on the page.
export function painted(element, paint) {
  let shown = false;
  const again = () => {
    if (element.isConnected) shown = true;
    else if (shown) {
      document.removeEventListener("theme", again);
      return;
    }
    paint();
  };
  document.addEventListener("theme", again);
}
