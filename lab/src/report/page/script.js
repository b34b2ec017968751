// language and theme: kept for the next visit where the browser allows it
(() => {
  const root = document.documentElement;
  const read = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  };
  const keep = (key, value) => {
    try {
      localStorage.setItem(key, value);
    } catch {
      // a page opened from a file may have no storage
    }
  };
  const asked = new URLSearchParams(location.search);
  const button = document.getElementById("language");
  const speak = (language) => {
    root.dataset.language = language;
    root.lang = language;
    button.textContent = language === "zh" ? "English" : "中文";
  };
  const first = navigator.language?.startsWith("zh") ? "zh" : "en";
  speak(asked.get("lang") ?? read("tokenwise-language") ?? first);
  button.addEventListener("click", () => {
    speak(root.dataset.language === "zh" ? "en" : "zh");
    keep("tokenwise-language", root.dataset.language);
  });
  const theme = asked.get("theme") ?? read("tokenwise-theme");
  if (theme) root.dataset.theme = theme;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    keep("tokenwise-theme", root.dataset.theme);
  });
})();
