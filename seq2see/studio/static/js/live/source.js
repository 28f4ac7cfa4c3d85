// What the server tells of a run. Its files may be written anew (a resumed run): then all is told from the beginning.

async function answered(path) {
  const answer = await fetch(path);
  const told = await answer.json().catch(() => ({ error: `The server said ${answer.status} without a reason.` }));
  if (!answer.ok) throw new Error(told.error ?? `The server said ${answer.status}.`);
  return told;
}

const query = (values) => {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  return given.length ? `?${new URLSearchParams(given)}` : "";
};

export const about = (model) => answered(`api/run${query({ model })}`);
export const recorded = async () => (await answered("api/models")).models.filter((one) => one.run);

// A list that grows: each call of `more` adds what is new, and gives the whole answer.
class Growing {
  constructor(path, key, model) {
    Object.assign(this, { path, key, model, file: null, next: 0, all: [] });
  }

  async more() {
    const told = await answered(`${this.path}${query({ model: this.model, after: this.next, file: this.file })}`);
    if (told.file !== this.file || told.first < this.all.length) this.all = this.all.slice(0, told.first);
    this.all.push(...told[this.key]);
    Object.assign(this, { file: told.file, next: told.next });
    return told;
  }
}

export class Run {
  constructor(model) {
    this.metrics = new Growing("api/run/metrics", "reports", model);
    this.frames = new Growing("api/run/film", "frames", model);
    this.scenes = [];
  }

  get reports() {
    return this.metrics.all;
  }

  // Whether the examples are others than before.
  async film() {
    let changed = false;
    for (let told = null; !told?.whole;) {
      told = await this.frames.more();
      if (told.film === null) continue;
      changed ||= JSON.stringify(this.scenes) !== JSON.stringify(told.film.examples);
      this.scenes = told.film.examples;
    }
    return changed;
  }
}
