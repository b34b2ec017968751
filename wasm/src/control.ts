/** Where {@link adaptiveKl} is and where it wants to be. */
export interface AdaptiveKlConfig {
  /** The price now, not negative; default 0.001. */
  beta?: number;
  /** The KL wanted; default 0.1. */
  target?: number;
  /** Over how many samples the price may move by its full step; default 10000. */
  horizon?: number;
}

/** The price of the next step, from the KL of a step over `samples` sequences: it never moves. */
export function fixedKl(beta: number, kl: number, samples: number): number;

/** The price of the next step. `β · (1 + clip(KL / target − 1, −0.2, 0.2) · n / horizon)` */
export function adaptiveKl(config: AdaptiveKlConfig | undefined, kl: number, samples: number): number;
