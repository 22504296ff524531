"""What a span of days still lacks, and what filling it in would cost. Nothing here draws."""

from tasks.backfill.cost import BackfillCost as BackfillCost
from tasks.backfill.cost import cost_of as cost_of
from tasks.backfill.plan import BackfillPlan as BackfillPlan
from tasks.backfill.plan import plan_backfill as plan_backfill
