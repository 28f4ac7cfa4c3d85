// The list of models; what comes from the server is put in as text, never as markup.
const list = document.getElementById("models");

const answer = await fetch("api/models");
const told = await answer.json();
const lines = answer.ok
  ? told.models.map((model) => `${model.name}: ${model.inputs.map((one) => one.name).join(", ") || "nothing"} → ${model.output.kind}`)
  : [told.error];
list.replaceChildren(...lines.map((line) => {
  const item = document.createElement("li");
  item.textContent = line;
  return item;
}));
