"""Who says that a node or an edge is."""

from django.db import models


class Origin(models.TextChoices):
    """What is extracted goes when nothing mentions it any more; what is given stays."""

    GIVEN = "given", "given by a person or program"
    EXTRACTED = "extracted", "found in documents"
