/** The model of the job, by its exact name, or a Refusal. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Refusal } from "./refusal.mjs";

/** { runtime, model } for exactly (provider, model); pi's fuzzy matching and its own choice are never asked. */
export async function findModel({ pi, settings, places, agentDir }) {
  const overlay = join(places.overlay, "models.json");
  const runtime = await pi.ModelRuntime.create({
    authPath: join(agentDir, "auth.json"),
    modelsPath: existsSync(overlay) ? overlay : join(agentDir, "models.json"),
    modelsStorePath: join(agentDir, "models-store.json"), // beside the overlay it would be on a read-only mount
  });
  const broken = runtime.getError();
  if (broken) throw new Refusal("config", `the models file is not usable: ${broken}`);
  const { provider, model: id } = settings;
  const model = runtime.getModel(provider, id);
  if (!model || model.provider !== provider || model.id !== id) {
    throw new Refusal("model-unknown", `pi knows no model ${JSON.stringify(id)} of provider ${JSON.stringify(provider)}`);
  }
  if ((await runtime.checkAuth(provider)) === undefined) {
    throw new Refusal("provider-unconfigured", `no credential for provider ${JSON.stringify(provider)} reached the container`);
  }
  return { runtime, model };
}
