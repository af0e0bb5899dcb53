"""Lists of runs that belong together: fewer seeds for costly methods, values in pairs."""

from collections.abc import Sequence

from prslib.config import RunConfig, configs


def configs_of(
    methods: Sequence[str],
    seeds: Sequence[int],
    costly: Sequence[str] = (),
    costly_seeds: Sequence[int] = (),
    **fields,
) -> list[RunConfig]:
    """Make the configurations of several methods, the costly ones with fewer seeds (Table 1).

    The paper has five seeds, and three for GSS "due to its computational complexity".

    Parameters
    ----------
    methods : sequence of str
        Keys of `METHODS`.
    seeds : sequence of int
        One run of every method for each.
    costly : sequence of str
        Those of the methods that take ``costly_seeds`` instead; others in it do not count.
    costly_seeds : sequence of int
        Their seeds.
    **fields
        Further fields of `RunConfig`; a list stands for one run each of its values.

    Returns
    -------
    list of RunConfig
        The costly methods first, as their runs take longest.

    Raises
    ------
    ValueError
        If a costly method has no seed, or as in `configs`.

    Examples
    --------
    >>> made = configs_of(["CRS", "GSS"], [0, 1], ["GSS"], [0], dataset="digits70tiny")
    >>> [(config.method, config.seed) for config in made]
    [('GSS', 0), ('CRS', 0), ('CRS', 1)]
    """
    slow = [name for name in methods if name in costly]
    if slow and not costly_seeds:
        raise ValueError(
            f"expected at least one seed for {', '.join(slow)}, got none; give costly_seeds, or "
            "leave costly empty"
        )
    usual = [name for name in methods if name not in costly]
    made = configs(**fields, method=slow, seed=list(costly_seeds))
    return made + configs(**fields, method=usual, seed=list(seeds))


def paired(**fields: Sequence) -> list[dict]:
    """Take lists of values side by side, one field's first with another's first (our own choice).

    Parameters
    ----------
    **fields
        Lists of one length.

    Returns
    -------
    list of dict
        One for each place in the lists.

    Raises
    ------
    ValueError
        If the lists differ in length.

    Examples
    --------
    >>> paired(dataset=["cocoseq", "nuswideseq"], rho=[-0.03, 0.02])[1]
    {'dataset': 'nuswideseq', 'rho': 0.02}
    """
    lengths = {name: len(values) for name, values in fields.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{count} of {name}" for name, count in lengths.items())
        raise ValueError(f"expected one value of each for every data set, got {told}")
    return [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]


def seeds_told(
    seeds: Sequence[int], costly: Sequence[str] = (), costly_seeds: Sequence[int] = ()
) -> str:
    """Say how many seeds a picture shows (our own choice).

    Parameters
    ----------
    seeds, costly, costly_seeds
        As in `configs_of`.

    Returns
    -------
    str
        For a caption.

    Examples
    --------
    >>> seeds_told([0, 1, 2], ["GSS"], [0])
    '3 seeds (GSS: 1)'
    """
    few = f" ({', '.join(costly)}: {len(costly_seeds)})" if costly else ""
    return f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}{few}"
