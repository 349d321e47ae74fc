"""Makes the figures of other tuners anew that `regret.rs` holds as constants.

    python3 -m venv peers && peers/bin/pip install optuna==5.0.0 smac==2.4.1
    peers/bin/python peers.py .../tune_regret --tuner optuna|smac|random --trials 40 --seeds 24

One measurement per configuration, the default first. A setting that fails is told as the worst value seen
so far. Each tuner recommends what its own best trial was.
"""
import argparse
import json
import math
import random
import statistics
import subprocess


class Surfaces:
    def __init__(self, binary):
        self.process = subprocess.Popen([binary, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **question):
        print(json.dumps(question), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


class Session:
    """One search: measures levels with noise and remembers the best value."""

    def __init__(self, surfaces, surface, seed):
        self.surfaces, self.surface, self.noise = surfaces, surface, random.Random(seed + 1000)
        self.worst, self.best = None, (-math.inf, None)

    def measure(self, levels):
        truth = self.surfaces.ask(surface=self.surface, levels=levels)
        if truth["fails"]:
            return self.worst if self.worst is not None else 1.0
        value = truth["throughput"] * math.exp(truth["noise"] * self.noise.gauss(0, 1) - truth["noise"] ** 2 / 2)
        self.worst = value if self.worst is None else min(self.worst, value)
        if value > self.best[0]:
            self.best = (value, levels)
        return value

    def regret(self):
        return self.surfaces.ask(surface=self.surface, levels=self.best[1])["regret"]


def default(knob):
    return float(knob["default"])


def draw(knob, rng):
    if knob["type"] == "categorical":
        return float(rng.randrange(len(knob["choices"])))
    low, high = knob["low"], knob["high"]
    value = low * (high / low) ** rng.random() if knob["scale"] == "log" else rng.uniform(low, high)
    return float(round(value)) if knob["type"] == "integer" else value


def by_random(session, knobs, trials, seed):
    rng = random.Random(seed)
    session.measure([default(knob) for knob in knobs])
    for _ in range(trials - 1):
        session.measure([draw(knob, rng) for knob in knobs])


def by_optuna(session, knobs, trials, seed):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial):
        levels = []
        for knob in knobs:
            if knob["type"] == "categorical":
                levels.append(float(trial.suggest_categorical(knob["name"], knob["choices"])))
            else:
                suggest = trial.suggest_int if knob["type"] == "integer" else trial.suggest_float
                levels.append(float(suggest(knob["name"], knob["low"], knob["high"], log=knob["scale"] == "log")))
        return math.log(session.measure(levels))

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.enqueue_trial({knob["name"]: knob["default"] for knob in knobs})
    study.optimize(objective, n_trials=trials)


def by_smac(session, knobs, trials, seed):
    import ConfigSpace
    import smac

    space = ConfigSpace.ConfigurationSpace(seed=seed)
    for knob in knobs:
        name, first = knob["name"], knob["default"]
        if knob["type"] == "categorical":
            space.add(ConfigSpace.CategoricalHyperparameter(name, knob["choices"], default_value=first))
            continue
        integer = knob["type"] == "integer"
        kind = ConfigSpace.UniformIntegerHyperparameter if integer else ConfigSpace.UniformFloatHyperparameter
        space.add(kind(name, knob["low"], knob["high"], default_value=first, log=knob["scale"] == "log"))

    def cost(config, seed=0):
        # Costs must be positive: microseconds per operation.
        return 1e6 / session.measure([float(config[knob["name"]]) for knob in knobs])

    scenario = smac.Scenario(space, n_trials=trials, deterministic=True, seed=seed)
    design = smac.HyperparameterOptimizationFacade.get_initial_design(
        scenario, additional_configs=[space.get_default_configuration()])
    smac.HyperparameterOptimizationFacade(
        scenario, cost, initial_design=design, overwrite=True, logging_level=40).optimize()


def main():
    tuners = {"random": by_random, "optuna": by_optuna, "smac": by_smac}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--tuner", choices=tuners, required=True)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=24)
    args = parser.parse_args()
    surfaces = Surfaces(args.binary)
    for surface in range(3):
        knobs, regrets = surfaces.ask(surface=surface)["knobs"], []
        for seed in range(args.seeds):
            session = Session(surfaces, surface, seed)
            tuners[args.tuner](session, knobs, args.trials, seed)
            regrets.append(100 * session.regret())
        low, middle, high = statistics.quantiles(regrets, n=4)
        print(f"{args.tuner} surface {surface} after {args.trials}: {middle:.0f} [{low:.0f},{high:.0f}]")


main()
