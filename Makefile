# The two commands of the README are `make demo` and `make test`; both set everything up first.
PYTHON ?= python3
BIN := .venv/bin
DEMO := demo
# where it is set, each process of the tests, and there are hundreds, compiles the whole project
unexport PYTHONDONTWRITEBYTECODE
# workers share few cores: threads of linear algebra would wait for each other
export OPENBLAS_NUM_THREADS = 1

.PHONY: demo test quick nightly-checks mutations histories check docs commands format picture assets audit canary evaluation studies faults fuzz clean process-faults

# A change of what the environment is made of makes a new one.
$(BIN)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[development]'
	touch $@

demo: $(BIN)/.installed  ## A fortnight of simulated dumps, released with real noise; prints where everything is.
	mkdir -p $(DEMO)
	test -e $(DEMO)/optstream.toml || $(BIN)/optstream init $(DEMO)/optstream.toml
	$(BIN)/optstream simulate --config $(DEMO)/optstream.toml --from 2016-02-01 --to 2016-02-14 --seed 0
	$(BIN)/optstream run --config $(DEMO)/optstream.toml $(foreach day,01 02 03 04 05 06 07 08 09 10 11 12 13 14,--date 2016-02-$(day))
	@echo 'page for users $(DEMO)/published/index.html, for operators $(DEMO)/trusted/report/french-load/report.html'

test: $(BIN)/.installed  ## All tests but those of studies and of nightly-checks; ends with the ten slowest.
	$(BIN)/python -m pytest -n 3 --dist loadfile -m "not nightly" --ignore tests/studies --durations 10

studies: $(BIN)/.installed  ## The tests of studies/; `python -m studies` and `make audit evaluation` run them.
	$(BIN)/python -m pytest -n 3 --dist loadfile -m "not nightly" tests/studies

# Folders all of whose tests have one of these marks are not collected.
quick: $(BIN)/.installed  ## The tests that need no server, browser or fault: while one works.
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not (server or faults or docs or browser or slow or nightly)" \
		--ignore tests/studies --ignore tests/docs --ignore tests/faults

nightly-checks: $(BIN)/.installed  ## What is too long for `make test`: its tests, the campaigns, the audit, the fuzzer.
	$(BIN)/python -m pytest -n 2 --dist loadfile -m nightly --durations 10
	$(MAKE) mutations histories faults process-faults audit fuzz

check: $(BIN)/.installed  ## Style, types, borders, the Dockerfile.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile

docs: $(BIN)/.installed  ## The documents as a site in build/site; a broken link is an error.
	$(BIN)/python -m docs.generate

commands: $(BIN)/.installed  ## Run every command of the documents, and list them.
	$(BIN)/python -m pytest -s tests/docs/test_pages_run.py

format: $(BIN)/.installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

picture: $(BIN)/.installed  ## The README's picture, from `make demo`'s output.
	$(BIN)/python -m docs.generate.picture --config $(DEMO)/optstream.toml --into docs/pictures

UPLOT := uplot-1.6.32.tgz
UPLOT_SHA512 := 2883159c6ebccefbb95d751b0b82d010f9e1c0ec41b8bc96d401eda66e882935c89a46cb824332fa369b8cb8122cc6ac36e186cd09bf7a9ded3a4c93c6989023

assets:  ## The vendored scripts of the operators' pages, by npm, checked against the hash of their release.
	cd $$(mktemp -d) && npm pack --silent $(subst -1,@1,$(UPLOT:.tgz=)) && echo '$(UPLOT_SHA512)  $(UPLOT)' | sha512sum --check \
		&& tar -xzf $(UPLOT) && cd package && mv LICENSE dist/uPlot-LICENSE.txt && cd dist \
		&& cp uPlot.iife.min.js uPlot.min.css uPlot-LICENSE.txt $(CURDIR)/tasks/pages/static/vendored

audit: $(BIN)/.installed  ## The long audit: every mechanism and control; RUNS=100000 for tighter bounds.
	$(BIN)/python -m studies audit --days --runs $(or $(RUNS),20000) --output audit.json

canary: $(BIN)/.installed  ## Search what two runs of canary dumps left; prints the places searched.
	$(BIN)/python -m pytest -s tests/secrets/test_canary.py

faults: $(BIN)/.installed  ## The long form of tests/faults, on both databases, and power cuts: CUTS=200 SEED=….
	$(BIN)/python -m tests.faults.campaign --cuts $(or $(CUTS),200) $(and $(SEED),--seed $(SEED))

mutations: $(BIN)/.installed  ## Wrong lines of the core, by mutmut; prints those that no quick test notices (`mutmut show NAME`).
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[mutations]'
	$(BIN)/mutmut run
	$(BIN)/mutmut results

histories: $(BIN)/.installed  ## Random histories of amended guarantees against brute force, on both databases: HISTORIES, SEED.
	OPTSTREAM_HISTORIES=$(or $(HISTORIES),2000) OPTSTREAM_HISTORIES_SEED=$(or $(SEED),1) \
		$(BIN)/python -m pytest tests/optstream/ledger/test_histories.py -k no_window

process-faults: $(BIN)/.installed  ## Random faults of real command lines: FAULTS=1000 SEED=…; ONLY=N: one world again.
	$(BIN)/python -m tests.faults.campaign --commands $(or $(FAULTS),1000) $(and $(SEED),--seed $(SEED)) \
		$(and $(ONLY),--only $(ONLY))

# The results stay; a run that was stopped goes on. TRIALS=3 for a first look.
evaluation: $(BIN)/.installed  ## The papers' experiments; DATA=FOLDER of the public series.
	$(BIN)/python -m studies evaluate --data $(or $(DATA),$(OPTSTREAM_DATA),simulated) --into evaluation --public \
		$(if $(TRIALS),--trials $(TRIALS))

fuzz: $(BIN)/.installed  ## Hostile input for every reader, by grammar (TIMES) and by coverage (RUNS); SEED.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[fuzzing]'
	ulimit -v 16777216 && OPTSTREAM_FUZZ_TIMES=$(or $(TIMES),100) \
		$(BIN)/python -m pytest tests/properties/test_hostile_input.py --hypothesis-seed $(or $(SEED),1)
	$(BIN)/python tests/properties/fuzz.py --runs $(or $(RUNS),10000) --seed $(or $(SEED),1)

clean:
	rm -rf .venv $(DEMO) dist build
