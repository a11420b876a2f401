// Buttons that copy scripts: a page can do without, so they are made here.
if (navigator.clipboard) for (const block of document.querySelectorAll(".code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("pre").textContent);
    button.textContent = "Copied";
  });
  block.prepend(button);
}
