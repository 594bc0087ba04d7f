"""What programs cost and how exact they are: exchanges between devices, memory, and the true digits of results."""

from pullback.analysis.collectives import Collective as Collective
from pullback.analysis.collectives import collectives as collectives
from pullback.analysis.costs import Cost as Cost
from pullback.analysis.costs import cost as cost
from pullback.analysis.true_digits import Loss as Loss
from pullback.analysis.true_digits import Precision as Precision
from pullback.analysis.true_digits import ResultDigits as ResultDigits
from pullback.analysis.true_digits import precision as precision
from pullback.core.faces import face

__all__ = ["Collective", "Cost", "Loss", "Precision", "ResultDigits", "collectives", "cost", "precision"]
face(globals())
