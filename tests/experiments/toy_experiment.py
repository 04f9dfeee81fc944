"""An experiment that takes no time: numbers and their squares, with cases that can be made to fail."""

from comesh.experiments import stage


def cases(scale: stage.Scale) -> stage.Cases:
    return stage.combinations(number=range(8 if scale is stage.Scale.FULL else 4), seed=[1])


def run(case: stage.Parameters) -> list[stage.Row]:
    if case["number"] > 6:
        raise ValueError("seven is too much")
    return [{"square": case["number"] ** 2}]


def tables(table: stage.Table) -> dict[str, stage.Table]:
    return {"All | squares": stage.means(table, ("number",), ("square",))}


def bars(table: stage.Table) -> list[stage.Bar]:
    return [stage.Bar("the largest | square", max(table.numbers("square")), 9, ">=")]


def draw(table: stage.Table) -> stage.Figure:
    return stage.facets(table, x={"number": "number"}, y={"square": "square"}, line="seed")


EXPERIMENT = stage.Experiment(
    id="P1",
    title="Squares",
    campaign=stage.Campaign("squares", cases, run),
    paper="Squares <grow>.",
    tables=tables,
    bars=bars,
    draw=draw,
    about="By hand.",
)
