"""Measures what OptStream costs, each program beside a peer that does less or does it plainly, in one run.

Run one with `python -m studies.benchmarks.NAME`; `--help` lists its options. None asserts a time.

    program        question                                                    peer
    million        a night of many leaves, step by step: time, memory          polars' own sums
    nights.bounded_program  the bounded estimate up to a million leaves        OSQP, Clarabel, a reconciler
    mechanisms     error, cost and time of all mechanisms on public series     Laplace
    noise.currencies  a step's error by its noise                OpenDP
    noise.noise_coverage  `make coverage`: the table that report pages show    none
    sum_coverage   how often bands hold sums of days, weeks and four weeks     independent days
    small_counts   how far counts that are mostly zeros are from the truth     zeros, a city's shape
    history_cost   HistoryInformed by number of nodes                          OptStream
    fast_report    FAST's figures 6 to 18, algorithms as printed               Fast, Fourier, Laplace
    optstream_report  OptStream's January, its best points, its theta          Laplace, DFT, PeGaSus

`inputs` makes what they measure on, `harness` times and prints, `peers` has programs to compare with.
"""
