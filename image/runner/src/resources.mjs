/**
 * What the session may load, and in which order. Trust goes down from the image's guardrails over the repository
 * and the operator's overlay to staged packages, and pi's own discovery keeps to it in three places only, so the
 * order is given explicitly, and put right again after pi has loaded.
 */
import { existsSync } from "node:fs";
import { join, relative, sep } from "node:path";

/** Names of tools that only an operator's own pi may have: a job must not be able to start jobs. */
export const FORBIDDEN_TOOLS = "dispatch_*";

const FORBIDDEN_TOOL = /^dispatch_/i;
const ADMIN_NAME = /^(?:.*__)?(?:pi[-_.]?dispatch|dispatch[-_.]?admin)(?:$|[-_.])/i;

/** A loaded DefaultResourceLoader; `report` hears of everything that was dropped, broken or shadowed. */
export async function loadResources({ pi, settings, places, agentDir, settingsManager, prompts, report }) {
  const manager = new pi.DefaultPackageManager({ cwd: places.workspace, agentDir, settingsManager });
  const staged = await resourcesOf(manager, settings.packages);
  const hasOverlay = settings.overlayExtensions && existsSync(join(places.overlay, "extensions"));
  const overlay = await resourcesOf(manager, hasOverlay ? [places.overlay] : []);
  const tiers = [join(places.workspace, ".pi"), join(places.overlay, "extensions"), ...settings.packages];
  const loader = new pi.DefaultResourceLoader({
    cwd: places.workspace,
    agentDir,
    settingsManager,
    noSkills: true,
    noThemes: true,
    additionalExtensionPaths: [...overlay.extensions, ...staged.extensions],
    additionalSkillPaths: [...explicitSkills(places), ...staged.skills],
    additionalPromptTemplatePaths: [...present(join(places.overlay, "prompts")), ...staged.prompts],
    appendSystemPrompt: [], // given: no discovery; the texts go in below, where pi cannot take one for a path
    appendSystemPromptOverride: () => prompts,
    systemPromptOverride: () => undefined, // .pi/SYSTEM.md would replace pi's whole base prompt
    extensionsOverride: (loaded) => guardExtensions(loaded, tiers, report),
  });
  await loader.reload();
  reportShadowed(loader.getSkills().diagnostics, report);
  return loader;
}

/** A flow is a hint in the prompt: one that no tier provides is told, never refused. */
export function reportFlow(flow, loader, report) {
  if (flow === undefined || loader.getSkills().skills.some((skill) => skill.name === flow)) return;
  report.event("flow_not_loaded", { flow });
}

function explicitSkills(places) {
  const folders = [join(places.job, "pi", "skills"), join(places.job, "trigger-skills"), join(places.overlay, "skills")];
  return folders.filter((folder) => existsSync(folder));
}

function present(path) {
  return existsSync(path) ? [path] : [];
}

/**
 * What these folders hold, each laid out as a package, as files. Given to the loader as a folder, a package's skills
 * and prompts would come before the repository's.
 */
async function resourcesOf(manager, folders) {
  const found = await manager.resolveExtensionSources(folders, { temporary: true });
  const paths = (resources) => resources.filter((one) => one.enabled).map((one) => one.path);
  return { extensions: paths(found.extensions), skills: paths(found.skills), prompts: paths(found.prompts) };
}

/** Drops what could start jobs, tells what did not load, and orders: repository, overlay, packages. */
function guardExtensions(loaded, tiers, report) {
  const kept = [];
  for (const extension of loaded.extensions) {
    if (isAdmin(extension, tiers)) {
      report.event("extension_dropped", { reason: "admin-recursion-guard", extension: shortName(extension.path, tiers) });
    } else kept.push(extension);
  }
  for (const { path, error } of loaded.errors) {
    report.event("extension_failed", { extension: shortName(path, tiers), error });
  }
  const rank = (extension) => {
    const tier = tiers.findIndex((root) => isInside(root, extension.path));
    return tier === -1 ? tiers.length : tier;
  };
  return { ...loaded, extensions: kept.sort((one, other) => rank(one) - rank(other)) };
}

function isAdmin(extension, tiers) {
  if ([...extension.tools.keys()].some((name) => FORBIDDEN_TOOL.test(name))) return true;
  return shortName(extension.path, tiers).split(sep).some((part) => ADMIN_NAME.test(part));
}

/** The path below its tier (with the package's own folder): enough to find it, without the way there. */
function shortName(path, tiers) {
  const root = tiers.find((tier) => isInside(tier, path));
  return root === undefined ? path : relative(join(root, ".."), path);
}

function isInside(root, path) {
  return path === root || path.startsWith(root + sep);
}

function reportShadowed(diagnostics, report) {
  for (const { type, collision, message } of diagnostics) {
    if (type === "collision") report.event("skill_shadowed", { skill: collision.name, by: collision.winnerPath });
    else report.event("skill_warning", { message });
  }
}
