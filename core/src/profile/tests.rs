use super::*;

#[test]
fn names_lead_back() {
    for profile in Profile::ALL {
        assert_eq!(Profile::from_name(profile.name()), Some(profile));
    }
    assert_eq!(Profile::from_name("verl"), None);
}

#[test]
fn a_profile_differs_from_every_other_and_not_from_itself() {
    let count = |a: Profile, b| {
        let mut count = 0;
        a.differences(b, |_, _, _| count += 1);
        count
    };
    for a in Profile::ALL {
        for b in Profile::ALL {
            assert_eq!(count(a, b) == 0, a == b, "{a:?} {b:?}");
            assert_eq!(count(a, b), count(b, a));
        }
    }
}

#[test]
fn the_default_conventions_give_the_default_configs() {
    let c = Conventions::default();
    macro_rules! defaults {
        ($($config:ident),* $(,)?) => {$(assert_eq!(c.$config(), Default::default(), stringify!($config));)*};
    }
    defaults! {
        returns, gae, td_lambda, n_step, gae_decoupled, whiten, group, leave_one_out, best_of_group, length_weighted,
        gpg, gdpo, reinforce_plus_plus, reinforce_plus_plus_baseline, minillm, kl, kl_loss, kl_weighted, kl_reward,
        adaptive_kl, clipped_rewards, overlong, ppo, clip_fractions, gspo, gmpo, cispo, sapo, dppo, clip_cov, kl_cov,
        reinforce, vespo, value, entropy_bonus, rollout,
    }
}

#[test]
fn every_convention_differs_somewhere_and_is_exchanged_alone() {
    for &convention in Convention::ALL {
        let differs = |a: Profile, b: Profile| !a.conventions().agree(&b.conventions(), convention);
        assert!(Profile::ALL.iter().any(|&a| differs(a, Profile::Paper)), "{}: all profiles agree", convention.name());
        for a in Profile::ALL.map(Profile::conventions) {
            for b in Profile::ALL.map(Profile::conventions) {
                let exchanged = a.exchanged(convention, &b);
                assert!(exchanged.agree(&b, convention));
                assert!(Convention::ALL.iter().all(|&other| other == convention || exchanged.agree(&a, other)));
            }
        }
    }
    // one bit each
    assert!(Convention::ALL.len() <= 64);
}

#[test]
fn names_are_different() {
    for (index, &convention) in Convention::ALL.iter().enumerate() {
        assert!(Convention::ALL[..index].iter().all(|other| other.name() != convention.name()));
    }
    for (index, &quantity) in Quantity::ALL.iter().enumerate() {
        assert!(Quantity::ALL[..index].iter().all(|other| other.name() != quantity.name()));
    }
    assert_eq!(Quantity::with_shape(QuantityShape::Tokens), 15);
    assert_eq!(Quantity::with_shape(QuantityShape::Sequences), 5);
}
