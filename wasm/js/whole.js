// What the whole package has beside the formulas.

import * as bindings from "./bindings.js";
import { guard, held } from "./objects.js";

const { Batch, DualGame, EntropyBudget, Histogram, LinearKl, RoleBaselines, RunningMoments } = bindings;

for (const Class of [EntropyBudget, LinearKl, RoleBaselines, RunningMoments]) guard(Class);
guard(DualGame, "this", { step: ["batch", Batch] });
guard(Histogram, "this", { add: ["batch", Batch], merge: ["other", Histogram] });

/** A function whose first argument is an object of the module. */
const taking =
  (name, Class, call) =>
  (first, ...rest) =>
    call(held(name, first, Class), ...rest);

export const roleBaseline = taking("baselines", RoleBaselines, bindings.roleBaseline);
export const roleBaselineF64 = taking("baselines", RoleBaselines, bindings.roleBaselineF64);
export const compareProfiles = taking("batch", Batch, bindings.compareProfiles);
export const compareProfilesF64 = taking("batch", Batch, bindings.compareProfilesF64);
export const lint = taking("batch", Batch, bindings.lint);

export { DualGame, EntropyBudget, Histogram, LinearKl, RoleBaselines, RunningMoments };
export {
  adaptiveKl,
  analysisEntries,
  analysisMerge,
  coMomentsCorrelation,
  coMomentsCovariance,
  coMomentsMerge,
  fixedKl,
  momentsMean,
  momentsMerge,
  momentsVariance,
  parseRejection,
  parseWeightBound,
  reduceMetric,
} from "./bindings.js";
