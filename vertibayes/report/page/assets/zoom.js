/* Zoom and pan: the drawing grows inside a frame that scrolls, so that touch and scrollbars work. */

"use strict";

/** Return what the view can do with the drawing's scale and place. */
function zoomOf(model, frame, svg) {
  const { width, height } = svg.viewBox.baseVal;
  let scale = 1;
  svg.style.setProperty("--natural", `${width}px`); // which print takes
  let isFitted = true; // until the reader zooms

  /** Set the scale; what is at a point of the frame stays there. */
  function set(next, x = frame.clientWidth / 2, y = frame.clientHeight / 2) {
    const wanted = Math.min(Math.max(next, SCALES[0]), SCALES[1]);
    const [left, top] = [(frame.scrollLeft + x) / scale, (frame.scrollTop + y) / scale];
    scale = wanted;
    svg.setAttribute("width", width * scale);
    svg.setAttribute("height", height * scale);
    frame.scrollTo({ left: left * scale - x, top: top * scale - y, behavior: "instant" });
  }

  /** Return the scale at which everything is in sight. */
  function whole() {
    const most = Math.max(0.75 * window.innerHeight, 320) - 2; // the frame has a border
    return Math.min(frame.clientWidth / width, most / height, 1.25);
  }

  /** Scroll until a node is in the middle. */
  function reveal(node, behavior = isCalm() ? "instant" : "smooth") {
    const { x, y, width: w, height: h } = node;
    frame.scrollTo({
      left: (x + w / 2) * scale - frame.clientWidth / 2,
      top: (y + h / 2) * scale - frame.clientHeight / 2, behavior,
    });
  }

  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    isFitted = false;
    const { left, top } = frame.getBoundingClientRect();
    set(scale * Math.exp(-event.deltaY / 300), event.clientX - left, event.clientY - top);
  }, { passive: false });
  new ResizeObserver(() => isFitted && set(whole())).observe(frame);
  drag(frame);
  return {
    by: (factor) => { isFitted = false; set(scale * factor); },
    fit: () => { isFitted = true; set(whole()); },
    readable: () => {
      if (scale >= READABLE) return;
      isFitted = false;
      set(1);
    },
    reveal,
  };
}

/** Whether the reader asks for no motion. */
function isCalm() {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Let the mouse drag the content of a frame; fingers scroll it without help. */
function drag(frame) {
  let last = null;
  frame.addEventListener("pointerdown", (event) => {
    frame.classList.remove("was-dragged");
    if (event.pointerType === "mouse" && event.button === 0) last = [event.clientX, event.clientY];
  });
  window.addEventListener("pointermove", (event) => {
    if (!last) return;
    const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
    if (!frame.classList.contains("was-dragged") && Math.hypot(dx, dy) < 4) return;
    frame.classList.add("was-dragged"); // its click is not meant for a node
    frame.scrollBy({ left: -dx, top: -dy, behavior: "instant" });
    last = [event.clientX, event.clientY];
  });
  window.addEventListener("pointerup", () => { last = null; });
}
