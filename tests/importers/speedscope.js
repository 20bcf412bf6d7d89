// speedscope.js MODULES FILE: opens the file with speedscope's own bundle in jsdom, as its page does
// with a local profile, and says the title that the page gets: the profile's name, if the import
// went well. There is no WebGL to draw it with, which comes after that. A speedscope file is held
// against speedscope's schema as well.
const fs = require("fs");
const path = require("path");

const [modules, file] = process.argv.slice(2);
const load = (name) => require(path.join(path.resolve(modules), name));
const release = path.join(path.resolve(modules), "speedscope/dist/release");
const bytes = fs.readFileSync(file);
const IMPORT_MS = 10000;

if (file.endsWith(".speedscope.json")) {
  const Ajv = load("ajv");
  const schema = JSON.parse(fs.readFileSync(path.join(release, "file-format-schema.json")));
  const validate = new Ajv({ strict: false }).compile(schema);
  console.log("schema:", validate(JSON.parse(bytes)) ? "valid" : JSON.stringify(validate.errors));
}

const { JSDOM, VirtualConsole } = load("jsdom");
const quiet = new VirtualConsole();
const { window } = new JSDOM("<!doctype html><html><body></body></html>", {
  url: "http://localhost/#localProfilePath=profile.js",
  runScripts: "outside-only",
  pretendToBeVisual: true,
  virtualConsole: quiet,
});
// Of the drawing, which there is no WebGL for.
process.on("uncaughtException", () => {});
process.on("unhandledRejection", () => {});
window.matchMedia = () => ({ matches: false, addListener() {}, addEventListener() {} });
window.HTMLCanvasElement.prototype.getContext = () => null;
Object.assign(window, { TextDecoder, TextEncoder });
window.alert = (text) => console.log("alert:", text);
const bundle = fs.readdirSync(release).find((name) => /^speedscope-.*\.js$/.test(name));
window.eval(fs.readFileSync(path.join(release, bundle), "utf8"));
window.speedscope.loadFileFromBase64(path.basename(file), bytes.toString("base64"));
const start = Date.now();
setInterval(() => {
  if (!window.document.title && Date.now() - start < IMPORT_MS) return;
  console.log("title:", window.document.title);
  process.exit(0);
}, 50);
