// SPDX-License-Identifier: MIT
// Reads Parca's WriteRawRequest as JSON from the standard input, by the classes that Parca's own user
// interface has of its definitions, and writes it back. A field that is not known is an error.
import { register } from "node:module";
import { pathToFileURL } from "node:url";

// The package is made for a bundler: its imports have no suffixes.
const hooks = `
export const resolve = (name, context, next) => next(/^\\.\\.?\\//.test(name) && !name.endsWith(".js") ? name + ".js" : name, context);
export const load = (url, context, next) => next(url, url.includes("/@parca/client/") ? { ...context, format: "module" } : context);
`;
register("data:text/javascript," + encodeURIComponent(hooks));

const from = pathToFileURL(process.argv[2] + "/@parca/client/dist/parca/profilestore/v1alpha1/profilestore.js");
const { WriteRawRequest } = await import(from);
let text = "";
for await (const part of process.stdin) text += part;
const request = WriteRawRequest.fromJsonString(text, { ignoreUnknownFields: false });
process.stdout.write(WriteRawRequest.toJsonString(request));
