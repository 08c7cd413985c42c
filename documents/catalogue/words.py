"""The words that a name is made of: people ask for “customer revenue”, not `custRevenue_2`."""

import re

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-zß-öø-ÿ]+|[A-Z]+|\d+|[^\W\d_]+")


def words_of(name: str) -> str:
    """`customerOrders`, `customer_orders` and `CUSTOMER-ORDERS` give `customer orders`."""
    return " ".join(_WORD.findall(name)).lower()


def with_words(name: str) -> str:
    """The name, and its words where they say more: `custId (cust id)`."""
    words = words_of(name)
    return name if not words or words == name.lower() else f"{name} ({words})"
