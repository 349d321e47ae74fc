use super::*;

/// Levels, and throughput and noise according to the responses' definition, which was written in another
/// language.
const CASES: [(Surface, &[f64], f64, f64); 6] = [
    (
        Surface::Wt8,
        &[7.5, 20.0, 0.25, 60.0, 4.0, 1.0, 128.0, 128.0],
        142_934.758_761_659_9,
        0.1,
    ),
    (
        Surface::Wt8,
        &[
            0.683_774_833_341_159_3,
            48.0,
            0.818_958_933_843_935_4,
            5.0,
            16.0,
            2.0,
            26.0,
            12.0,
        ],
        178_827.937_021_333_5,
        0.1,
    ),
    (
        Surface::Sparse20,
        &[
            3.0, 250.0, 0.6, 16.0, 0.4, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5,
            0.5, 0.0, 0.0,
        ],
        28_842.945_645_224_34,
        0.15,
    ),
    (
        Surface::Deceptive12,
        &[
            0.0, 1.0, 1.0, 0.0, 16.0, 32.0, 0.5, 100.0, 4.0, 0.05, 0.15, 64.0,
        ],
        59_903.774_188_478_96,
        0.190_096_225_811_521_02,
    ),
    (
        Surface::Deceptive12,
        &[
            1.0,
            0.0,
            1.0,
            0.0,
            59.0,
            107.0,
            0.813_743_654_163_876_4,
            2.0,
            6.0,
            0.011_236_332_497_166_044,
            0.023_521_193_840_947_98,
            67.0,
        ],
        34_040.200_405_061_27,
        0.215_959_799_594_939_75,
    ),
    (
        Surface::Deceptive12,
        &[
            2.0,
            1.0,
            0.0,
            0.0,
            110.0,
            75.0,
            0.745_702_618_619_504_2,
            155.0,
            9.0,
            0.450_084_952_655_622_26,
            0.043_966_161_665_064_896,
            99.0,
        ],
        36_511.548_726_254_32,
        0.213_488_451_273_745_7,
    ),
];

#[test]
fn the_responses_are_as_defined() {
    for (surface, levels, throughput, noise) in CASES {
        let truth = surface.truth(levels);
        assert!(
            (truth.throughput / throughput - 1.0).abs() < 1e-12,
            "{surface:?} {truth:?}"
        );
        assert!(
            (truth.noise - noise).abs() < 1e-12 && !truth.fails,
            "{surface:?} {truth:?}"
        );
    }
    assert!(
        Surface::Wt8
            .truth(&[18.0, 20.0, 0.2, 60.0, 4.0, 1.0, 64.0, 64.0])
            .fails
    );
    assert!(Surface::Wt8.truth(&[]).fails);
}

#[test]
fn measurements_have_the_noise_that_they_say() {
    let levels = [7.5, 20.0, 0.25, 60.0, 4.0, 1.0, 128.0, 128.0];
    let mut rng = SplitMix64::new(1);
    let truth = Surface::Wt8.truth(&levels).throughput;
    let draws: Vec<f64> = (0..4000)
        .filter_map(|_| Surface::Wt8.measure(&levels, &mut rng))
        .map(|v| v / truth)
        .collect();
    let mean = draws.iter().sum::<f64>() / 4000.0;
    let variance = draws.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 4000.0;
    assert!(
        (mean - 1.0).abs() < 0.01 && (variance.sqrt() - 0.1).abs() < 0.01,
        "{mean} {variance}"
    );
}
