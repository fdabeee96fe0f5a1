/* Bars with error bars as inline SVG, and numbers as people read them. No library; text never becomes markup. */
"use strict";
const Bars = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const PITCH = 22, BAR = 13, GAP = 12, NARROW = 600;
  const pen = document.createElement("canvas").getContext("2d");

  function make(tag, attributes = {}, text = "") {
    const made = document.createElementNS(NS, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text) made.textContent = text;
    return made;
  }

  /* A number with so many digits, as Python's "g" writes it. */
  function general(value, digits) {
    if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
    if (value === 0) return Object.is(value, -0) ? "-0" : "0";
    const [front, behind] = rounded(value, "toExponential", digits - 1).split("e");
    const power = Number(behind);
    if (power >= -4 && power < digits) return stripped(rounded(value, "toFixed", digits - 1 - power));
    return `${stripped(front)}e${exponent(behind)}`;
  }

  /* What toFixed and toExponential write, but a number half-way between two is rounded to the even one. */
  function rounded(value, way, digits) {
    const usual = value[way](digits);
    const [whole, behind = ""] = Math.abs(value)[way](100).split(".");
    const rest = behind.split("e")[0].slice(digits);
    if (!/^50*$/.test(rest)) return usual;
    const cut = digits ? `${whole}.${behind.slice(0, digits)}` : whole;
    if (Number(cut[cut.length - 1]) % 2) return usual;
    const power = way === "toExponential" ? `e${usual.split("e")[1]}` : "";
    return `${value < 0 ? "-" : ""}${cut}${power}`;
  }

  function stripped(text) {
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  }

  function exponent(text) {
    const sign = text[0] === "-" ? "-" : "+";
    return sign + text.replace(/^[+-]/, "").padStart(2, "0");
  }

  function scientific(value, digits) {
    const [front, behind] = rounded(value, "toExponential", digits).split("e");
    return `${front}e${exponent(behind)}`;
  }

  function signed(text, value) {
    return text.startsWith("-") || Number.isNaN(value) ? text : `+${text}`;
  }

  function fixed(value, digits) {
    const text = rounded(value, "toFixed", digits);
    return Object.is(value, -0) || (value < 0 && !text.startsWith("-")) ? `-${text.replace("-", "")}` : text;
  }

  /* Value and half-width, with as many digits as the half-width warrants. */
  function number(value, error) {
    if (!Number.isFinite(error) || !Number.isFinite(value)) {
      return `${signed(general(value, 4), value)} ± ${general(error, 2)}`;
    }
    const isTiny = error < 1e-12 * Math.abs(value);
    const scale = isTiny ? Math.max(error, 1e-4 * Math.abs(value)) : error;
    let digits = scale > 0 ? 1 - Math.floor(Math.log10(scale)) : 4;
    if (digits < -3 || digits > 9) {
      let behind = 3;
      if (value !== 0 && !isTiny) {
        behind = Math.max(3, Math.floor(Math.log10(Math.abs(value))) - Math.floor(Math.log10(error)) + 1);
      }
      return `${signed(scientific(value, behind), value)} ± ${scientific(error, 1)}`;
    }
    digits = Math.max(digits, 0);
    let half = fixed(error, digits);
    if (error > 0 && Number(half) === 0) half = scientific(error, 1);
    return `${signed(fixed(value, digits), value)} ± ${half}`;
  }

  /* A value of a feature: whole numbers whole, others with four digits. */
  function valueWord(x) {
    if (x === null || !Number.isFinite(x)) return "";
    const size = Math.abs(x);
    return (size >= 1e4 && size < 1e7) || (x === Math.round(x) && size < 1e7) ? x.toFixed(0) : general(x, 4);
  }

  function wide(text, size = 12) {
    pen.font = `${size}px system-ui, sans-serif`;
    return pen.measureText(text).width;
  }

  /* Beginning and end of a text that takes more pixels than there are. */
  function fitted(text, room, size = 12) {
    if (wide(text, size) <= room) return text;
    const letters = Array.from(text);
    for (let kept = letters.length - 1; kept > 1; kept--) {
      const tail = Math.floor(kept / 2);
      const cut = `${letters.slice(0, kept - tail).join("")}…${letters.slice(letters.length - tail).join("")}`;
      if (wide(cut, size) <= room) return cut;
    }
    return "…";
  }

  function niceTicks(low, high, most = 5) {
    const rough = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough * (1 - 1e-9));
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); i++) {
      found.push(Number((i * step).toPrecision(12)));
    }
    return found;
  }

  function axisOf(bars) {
    const all = bars.flatMap((bar) => [bar.value, bar.lower, bar.upper]);
    const ends = [0, ...all.filter((end) => Number.isFinite(end))];
    let low = Math.min(...ends), high = Math.max(...ends);
    if (!(high > low)) return { low: -1, high: 1, ticks: [-1, 0, 1] };
    if (all.some((end) => end === Infinity || end === -Infinity)) {
      high = 1.12 * Math.max(high, -low);
      low = -high;
    }
    const ticks = niceTicks(low, high);
    return { low: Math.min(low, ticks[0]), high: Math.max(high, ticks[ticks.length - 1]), ticks };
  }

  function kindOf(bar) {
    return !bar.sure ? "unsure" : bar.value > 0 ? "raises" : "lowers";
  }

  /* Draw into a holder, as wide as it is. A chart has a title and bars: label (and a brief one), name, value, lower,
     upper, sure, text, hollow. In a narrow holder labels stand above their bars.
     Charts that are compared share a scale, of `axisOf`. */
  function draw(holder, chart) {
    const axis = chart.scale || axisOf(chart.bars);
    const across = Math.max(260, Math.min(holder.clientWidth || 720, 900));
    const isNarrow = across < NARROW;
    const beside = Math.max(0, ...chart.bars.map((bar) => wide(bar.label)));
    const left = isNarrow ? 6 : 12 + Math.min(beside, 0.42 * across);
    const behind = Math.max(0, ...chart.bars.map((bar) => wide(bar.text)));
    const right = across - (isNarrow ? 8 : 12 + Math.min(behind, 0.25 * across));
    const at = (value) => left + ((right - left) * (Math.min(Math.max(value, axis.low), axis.high) - axis.low)) / (axis.high - axis.low);
    const pitch = isNarrow ? PITCH + 17 : PITCH;
    const parts = [];
    let y = 4, wasHollow = false;
    for (const bar of chart.bars) {
      if (bar.hollow && !wasHollow && parts.length) y += GAP;
      parts.push(one(bar, y + pitch - PITCH / 2, { at, left, right, across, isNarrow }));
      y += pitch;
      wasHollow = bar.hollow;
    }
    const bottom = y + 2;
    const rules = axis.ticks.map((tick) =>
      make("path", { class: tick === 0 ? "rule zero" : "rule", d: `M${at(tick).toFixed(1)} 2V${bottom}` }));
    const ticks = axis.ticks.map((tick, i) => {
      const word = general(tick, 6), half = wide(word, 11) / 2 + 1;
      const x = Math.min(Math.max(at(tick), half), across - half);
      return make("text", { class: "tick", x: x.toFixed(1), y: bottom + 15, "text-anchor": "middle" }, word);
    });
    const svg = make("svg", { class: "bars", role: "img", width: across, viewBox: `0 0 ${across} ${bottom + 20}` });
    svg.setAttribute("aria-label", `${chart.title}. ${chart.bars.map((bar) => `${bar.label}: ${bar.text}`).join("; ")}`);
    svg.append(...rules, ...parts, ...ticks);
    holder.replaceChildren(svg);
    return svg;
  }

  function one(bar, y, { at, left, right, across, isNarrow }) {
    const group = make("g", { class: `bar ${kindOf(bar)}${bar.hollow ? " hollow" : ""}` });
    group.append(make("title", {}, `${bar.name}: ${bar.text}`));
    const value = Number.isFinite(bar.value) ? bar.value : 0;
    const from = Math.min(at(0), at(value)), to = Math.max(at(0), at(value));
    group.append(make("rect", {
      x: from.toFixed(2), y: y - BAR / 2, width: Math.max(0.5, to - from).toFixed(2), height: BAR,
    }));
    const known = !Number.isNaN(bar.lower) && !Number.isNaN(bar.upper) && bar.lower !== null && bar.upper !== null;
    if (known && bar.lower !== bar.upper) {
      const low = at(bar.lower), high = at(bar.upper);
      const ends = [[low, bar.lower], [high, bar.upper]].filter(([, end]) => Number.isFinite(end));
      const caps = ends.map(([x]) => `M${x.toFixed(2)} ${y - 3.5}V${y + 3.5}`).join("");
      group.append(make("path", { class: "whisker", d: `M${low.toFixed(2)} ${y}H${high.toFixed(2)}${caps}` }));
    }
    if (isNarrow) {
      const room = right - left - wide(bar.text) - 10;
      group.append(make("text", { x: left, y: y - BAR }, fitted(wide(bar.label) > room && bar.brief ? bar.brief : bar.label, room)));
      group.append(make("text", { class: "number", x: right, y: y - BAR, "text-anchor": "end" }, bar.text));
    } else {
      group.append(make("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, fitted(bar.label, left - 10)));
      group.append(make("text", { class: "number", x: right + 8, y: y + 4 }, fitted(bar.text, across - right - 10)));
    }
    return group;
  }

  /* Draw, and again whenever the holder gets another width. */
  function keep(holder, chart) {
    holder.chart = chart;
    draw(holder, chart);
    if (holder.watch || !("ResizeObserver" in window)) return;
    let before = holder.clientWidth;
    holder.watch = new ResizeObserver(() => {
      if (holder.clientWidth === before || !holder.clientWidth) return;
      before = holder.clientWidth;
      draw(holder, holder.chart);
    });
    holder.watch.observe(holder);
  }

  return { axisOf, draw, fixed, general, keep, number, signed, valueWord };
})();
