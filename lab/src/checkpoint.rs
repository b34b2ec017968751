//! A run on disk, from which it continues with the same bits.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::Write,
    path::Path,
};

use anyhow::Context;
use safetensors::{tensor::TensorView, Dtype, SafeTensors};
use serde::{Deserialize, Serialize};
use tokenwise::{control::DualGame, loss::DualGameLoss};

use crate::{
    adam::Adam,
    model::{Network, Shape},
    settings::Settings,
    training::{Trainer, WarmUp},
};

/// The name of the file in the folder of a run.
pub const FILE: &str = "checkpoint.safetensors";

/// What is not a tensor.
#[derive(Serialize, Deserialize)]
struct State {
    settings: Settings,
    step: u64,
    warm_up: WarmUp,
    policy_updates: u64,
    critic_updates: u64,
    game: DualGame,
    /// Loss, the three clip fractions, KL.
    last_update: Option<[f64; 5]>,
}

/// Writes the state of a run. The file is complete at any time: a new one replaces the old one by renaming.
///
/// # Errors
///
/// If the file cannot be written.
pub fn save(folder: &Path, trainer: &Trainer) -> anyhow::Result<()> {
    let state = State {
        settings: trainer.settings,
        step: trainer.step,
        warm_up: trainer.warm_up,
        policy_updates: trainer.policy_adam.updates,
        critic_updates: trainer.critic_adam.updates,
        game: trainer.game,
        last_update: trainer.last_update.map(|update| {
            let DualGameLoss { loss, clip_fraction, clip_fraction_upper, clip_fraction_lower, kl, .. } = update;
            [loss, clip_fraction, clip_fraction_upper, clip_fraction_lower, kl]
        }),
    };
    let mut tensors = Vec::new();
    let mut add = |part: &str, network: &Network, numbers: &[Vec<f32>]| {
        for ((name, weights), numbers) in network.names().iter().zip(network.weights()).zip(numbers) {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            tensors.push((format!("{part}.{name}"), weights.dims().to_vec(), bytes));
        }
    };
    let Trainer { policy, critic, reference, policy_adam, critic_adam, .. } = trainer;
    add("policy", policy, &policy.to_vecs()?);
    add("policy_first", policy, &policy_adam.first);
    add("policy_second", policy, &policy_adam.second);
    add("critic", critic, &critic.to_vecs()?);
    add("critic_first", critic, &critic_adam.first);
    add("critic_second", critic, &critic_adam.second);
    add("reference", reference, &reference.to_vecs()?);
    let views = tensors
        .iter()
        .map(|(name, dims, bytes)| Ok((name.as_str(), TensorView::new(Dtype::F32, dims.clone(), bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()?;
    let state = HashMap::from([("state".to_owned(), serde_json::to_string(&state)?)]);
    write(&folder.join(FILE), &safetensors::serialize(views, Some(state))?)
}

/// Writes a file by renaming a complete copy.
///
/// # Errors
///
/// If it cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let run = || -> std::io::Result<()> {
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    };
    run().with_context(|| format!("cannot write {}", path.display()))
}

/// Reads the state of a run; `None` if there is none.
///
/// # Errors
///
/// If the file cannot be read, or belongs to a run with other settings.
pub fn load(folder: &Path, settings: &Settings) -> anyhow::Result<Option<Trainer>> {
    let path = folder.join(FILE);
    if !path.exists() {
        return Ok(None);
    }
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let parse = || -> anyhow::Result<Trainer> {
        let (_, metadata) = SafeTensors::read_metadata(&bytes)?;
        let state = metadata.metadata().as_ref().and_then(|all| all.get("state")).context("it has no state")?;
        let state: State = serde_json::from_str(state)?;
        anyhow::ensure!(
            state.settings == *settings,
            "it belongs to other settings: remove the folder, or choose another one by --out"
        );
        let tensors = SafeTensors::deserialize(&bytes)?;
        let numbers = |part: &str, shape: Shape| -> anyhow::Result<Vec<Vec<f32>>> {
            let names = shape.names();
            let read = |name: &String| -> anyhow::Result<Vec<f32>> {
                let tensor = tensors.tensor(&format!("{part}.{name}"))?;
                let words = tensor.data().chunks_exact(4);
                Ok(words.map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
            };
            names.iter().map(read).collect()
        };
        let network = |part: &str, shape: Shape| -> anyhow::Result<Network> {
            Ok(Network::with_weights(shape, numbers(part, shape)?)?)
        };
        let (policy, critic) = (settings.policy_shape(), settings.critic_shape());
        Ok(Trainer {
            settings: *settings,
            step: state.step,
            warm_up: state.warm_up,
            policy: network("policy", policy)?,
            policy_adam: Adam {
                updates: state.policy_updates,
                first: numbers("policy_first", policy)?,
                second: numbers("policy_second", policy)?,
            },
            critic: network("critic", critic)?,
            critic_adam: Adam {
                updates: state.critic_updates,
                first: numbers("critic_first", critic)?,
                second: numbers("critic_second", critic)?,
            },
            reference: network("reference", policy)?,
            game: state.game,
            last_update: state.last_update.map(|numbers| {
                let mut update = DualGameLoss::default();
                [
                    update.loss,
                    update.clip_fraction,
                    update.clip_fraction_upper,
                    update.clip_fraction_lower,
                    update.kl,
                ] = numbers;
                update
            }),
        })
    };
    parse().map(Some).with_context(|| format!("cannot continue from {}", path.display()))
}
