from prslib.datasets import load_dataset
from prslib.datasets.base import schedule_of
from prslib.report import single_label

TINY = "imbal-digits-tiny"


def test_random_orders_are_different_and_those_that_are_committed(program):
    dataset = load_dataset(TINY, images=False)
    orders = program("class_orders").random_orders(dataset, 10)
    assert len(set(orders)) == 10
    rows = single_label.order_scores(TINY, "random", 10)
    assert list(map(schedule_of, rows["schedule"].unique())) == orders
