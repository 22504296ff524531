"""Measures what OptStream costs, each program beside a peer that does less or does it plainly, in one run.

Run one with `python -m benchmarks.NAME`; `--help` lists its options. None asserts a time.

    program        question                                                    peer
    million        a night of many leaves, step by step: time, memory          polars' own sums
    nights.bounded_program  the bounded estimate up to a million leaves        OSQP, Clarabel, a reconciler
    backfill       how long years take, and whether days become slower         a bare script
    ingest         a large metered dump: time, memory, keyed hashes            polars' own sums
    ledger_growth  whether the ledger stays fast as it grows                   bare SQLite commits
    release_time   measuring and estimating a period                           cvxpy, numpy
    mechanisms     error, cost and time of all mechanisms on public series     Laplace
    noise.optstream_bands  how often OptStream's bands hold single values      the noise alone
    noise.currencies  a step's error by Laplace, joint and Gaussian noise      OpenDP
    history.advised_plans  whether plans expected to err less do err less      all plans
    history_cost   HistoryInformed by number of nodes                          OptStream
    history.whole_path  its night from dump to file, with new estimates        none
    history_proxy  what a public proxy is worth to a stream that begins        general prior medians
    history.covariates  what public temperature is worth to HistoryInformed    no covariate
    fast_report    FAST's figures 6 to 18, algorithms as printed               Fast, Fourier, Laplace
    optstream_report  OptStream's January, its best points, its theta          Laplace, DFT, PeGaSus
    small_counts   how far counts that are mostly zeros are from the truth     zeros, a city's shape
    sum_coverage   how often bands hold sums of days, weeks and four weeks     independent days
    report_page    the data users' page: size, making, painting, answers       polars' scan, an empty page

    noise.noise_coverage is `make coverage`: the table that report pages show.

What they measure on is made in `inputs`: `configuration_text` and `fixture` make streams (dumps, published
days), `exact_meters` a large day of meters, `ledger_history` a long ledger; `public_data` has the public
series. What they share besides is in `harness`: `measure` times and prints, `step_watch` notes what each
step of a night takes, `prefect_server` runs a server. `peers` has `bare_script`, `naive_program` and
`fast_as_printed`.
"""
