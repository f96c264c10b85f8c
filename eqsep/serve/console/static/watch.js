/* The picture of the watch: rows and alarms per minute, from the numbers in data-plot. */

(() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const clock = (at) => new Date(1000 * at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false, timeZone: "UTC" });
  let shown = null;

  function draw() {
    const place = document.querySelector("[data-plot]");
    if (!place) return;
    if (shown) shown.destroy();
    const data = JSON.parse(place.dataset.plot);
    const axis = (options) => ({ stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, ...options });
    const series = (label, name, scale, dash) => ({ label, scale, stroke: colour(name), width: 2, dash, points: { show: data[0].length < 3 } });
    shown = new uPlot(
      {
        width: place.clientWidth - 24,
        height: 240,
        legend: { live: false },
        scales: { rows: { range: (u, low, high) => [0, Math.max(1, high * 1.1)] }, alarms: { range: (u, low, high) => [0, Math.max(1, high * 1.5)] } },
        axes: [axis({ incrs: [1, 2, 5, 10, 15, 30, 60].map((minutes) => 60 * minutes), values: (u, ticks) => ticks.map(clock) }), axis({ scale: "rows", label: "rows", labelSize: 22, size: 52 }), axis({ scale: "alarms", side: 1, label: "alarms", labelSize: 22, size: 44, grid: { show: false } })],
        series: [
          { label: "minute" },
          series("rows", "--accent", "rows"),
          series("alarms", "--bad", "alarms"),
          ...(data.length > 3 ? [series("shadow’s alarms", "--warn", "alarms", [5, 4])] : []),
        ],
      },
      data,
      place,
    );
  }

  document.addEventListener("htmx:afterSwap", () => { shown = null; draw(); });
  window.addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
