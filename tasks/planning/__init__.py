"""What a span of days still lacks, and what filling it in would cost. Nothing here draws."""

from tasks.planning.backfill_cost import BackfillCost as BackfillCost
from tasks.planning.backfill_cost import cost_of as cost_of
from tasks.planning.backfill_plan import BackfillPlan as BackfillPlan
from tasks.planning.backfill_plan import plan_backfill as plan_backfill
