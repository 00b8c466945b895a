"""What the papers claim about their studies, with the numbers that they give.

Where a paper does not say whether a training without a federation trains its batch norm, it is
taken to, as is usual, unless the study has it frozen alone. Claims that methods are comparable are
not here, nor are those that a paper's own tables do not bear out.
"""

from cxr_study.studies.papers import ablations, batch_norm, methods, real_sites

CLAIMS = (*ablations.CLAIMS, *real_sites.CLAIMS, *batch_norm.CLAIMS, *methods.CLAIMS)
