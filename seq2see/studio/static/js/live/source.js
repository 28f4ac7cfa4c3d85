// The data of a run from the server. A resumed run writes its files anew: then everything comes again from 0.

import { fetchJson } from "../api.js";

const query = (values) => {
  const present = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  return present.length ? `?${new URLSearchParams(present)}` : "";
};

export const about = (model) => fetchJson(`api/run${query({ model })}`);
export const recorded = async () => (await fetchJson("api/models")).models.filter((model) => model.run);

// A list that grows: each call of `more` appends what is new, and returns the whole response.
class Growing {
  constructor(path, key, model) {
    Object.assign(this, { path, key, model, file: null, next: 0, all: [] });
  }

  async more() {
    const part = await fetchJson(`${this.path}${query({ model: this.model, after: this.next, file: this.file })}`);
    if (part.file !== this.file || part.first < this.all.length) this.all = this.all.slice(0, part.first);
    this.all.push(...part[this.key]);
    Object.assign(this, { file: part.file, next: part.next });
    return part;
  }
}

export class Run {
  constructor(model) {
    this.metrics = new Growing("api/run/metrics", "reports", model);
    this.frames = new Growing("api/run/film", "frames", model);
    this.examples = [];
  }

  get reports() {
    return this.metrics.all;
  }

  // Load new frames; whether the examples are others than before.
  async film() {
    let changed = false;
    for (let part = null; !part?.whole;) {
      part = await this.frames.more();
      if (part.film === null) continue;
      changed ||= JSON.stringify(this.examples) !== JSON.stringify(part.film.examples);
      this.examples = part.film.examples;
    }
    return changed;
  }
}
