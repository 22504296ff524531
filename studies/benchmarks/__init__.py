"""Measures what OptStream costs, each program beside a peer that does less or does it plainly, in one run.

Run one with `python -m studies.benchmarks.NAME`; `--help` lists its options. None asserts a time.

    program        question                                                    peer
    million        a night of many leaves, step by step: time, memory          polars' own sums
    nights.bounded_program  the bounded estimate up to a million leaves        OSQP, Clarabel, a reconciler
    release_time   measuring and estimating a period                           cvxpy, numpy
    mechanisms     error, cost and time of all mechanisms on public series     Laplace
    noise.bodies, noise.currencies  a step's error by its noise                OpenDP
    noise.optstream_bands  how often OptStream's bands hold single values      the noise alone
    noise.noise_coverage  `make coverage`: the table that report pages show    none
    sum_coverage   how often bands hold sums of days, weeks and four weeks     independent days
    small_counts   how far counts that are mostly zeros are from the truth     zeros, a city's shape
    history_cost   HistoryInformed by number of nodes                          OptStream
    history_proxy  what a public proxy is worth to a stream that begins        general prior medians
    history.covariates  what public temperature is worth to HistoryInformed    no covariate
    history.changed_hierarchy  the nation's error where the tree changes       no change
    history.advised_plans  whether plans expected to err less do err less      all plans
    fast_report    FAST's figures 6 to 18, algorithms as printed               Fast, Fourier, Laplace
    optstream_report  OptStream's January, its best points, its theta          Laplace, DFT, PeGaSus

`inputs` makes what they measure on, `harness` times and prints, `peers` has programs to compare with.
"""
