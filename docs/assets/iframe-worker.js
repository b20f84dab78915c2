// A page that is opened as a file may not start a worker, and the search of the site runs in one. Here an unseen frame
// stands in for it: it loads the worker's script, and messages go to and fro. Pages from a server keep their workers.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      addEventListener("message", (event) => {
        if (event.source !== inside) return;
        this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
      inside.document.open();
      inside.document.write(`<!doctype html><html><body><script>
        window.postMessage = (message) => parent.postMessage(message, "*");
        window.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((done) => {
          const script = document.createElement("script");
          script.src = url;
          script.onload = done;
          document.body.append(script);
        })), Promise.resolve());
      <\/script><script src="${url}"><\/script></body></html>`);
      inside.document.close();
      this.ready = new Promise((done) => inside.addEventListener("load", done));
    }

    postMessage(message) {
      const inside = this.frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new MessageEvent("message", { data: structuredClone(message) })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
