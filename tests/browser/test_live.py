"""The live page in a browser: it shows what `explain` says, follows every control, and bears what people do to it."""

import contextlib
import re
import threading
import time

import httpx
import numpy as np
import pytest

import smoothlime as sl
from smoothlime.app.live import demo, server
from smoothlime.app.live.doors import new_token
from smoothlime.app.live.page import create_page
from smoothlime.app.live.subject import Subject
from smoothlime.plots.chart import of_row
from smoothlime.report.page import Part
from smoothlime.report.page import as_html as report_of

from . import samples

CHANCE = "chance of default"


@contextlib.contextmanager
def served(subject, **settings):
    """The address of a page, on a port of its own."""
    import uvicorn

    token, bound = new_token(), server.listen("127.0.0.1", 0)
    application = create_page(subject, token=token, **settings)
    running = uvicorn.Server(uvicorn.Config(application, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    try:
        yield server.address(bound, "127.0.0.1", token)
    finally:
        running.should_exit = True
        thread.join(10)


@pytest.fixture(scope="module")
def address():
    with served(demo.loans()) as found:
        yield found


@pytest.fixture
def serving():
    """Serves a subject until the test is over: pages are closed before, as `opened` asks for this first."""
    with contextlib.ExitStack() as stack:
        yield lambda subject: stack.enter_context(served(subject))


@pytest.fixture
def opened(serving, visit):
    def open_page(address, **settings):
        return visit(address, allowed=(address,), **settings)

    return open_page


def answered(page, times=1):
    """Wait until so many questions have been answered in full."""
    page.wait_for_function("n => Number(document.body.dataset.answered || 0) >= n", arg=times)


def count(page):
    return int(page.evaluate("() => document.body.dataset.answered || '0'"))


def bars(page, where="bars"):
    drawn = page.locator(f"#{where} g.bar")
    return [tuple(each.locator("text").all_text_contents()) for each in drawn.all()]


def slide(page, name, value):
    page.locator(name).evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", value
    )


def explained(row, changes=(), **settings):
    x = demo.applicants()[row : row + 1]
    for name, value in dict(changes).items():
        x[0, demo.FEATURES.index(name)] = value
    subject = demo.loans()
    around = {"background": subject.rows, "fixed": subject.fixed, "target": CHANCE, "sigma": 0.5, "rtol": 0.01}
    return subject.labelled(sl.explain(subject.model, x, **(around | settings)))


def shown(e):
    return [(bar.label, bar.text) for bar in of_row(e, 0).bars]


def test_the_page_shows_what_explain_says(opened, address):
    page = opened(address)
    answered(page)
    e = explained(0)
    assert bars(page) == shown(e)
    assert page.locator("#told").text_content() == of_row(e, 0).title
    assert f"{int(e.n_samples[0]):,} draws" in page.locator("#progress").text_content()
    page.locator("#row").select_option("7")
    answered(page, 2)
    assert bars(page) == shown(explained(7))


def test_every_control_changes_the_picture_to_what_explain_says(opened, address):
    page = opened(address)
    answered(page)
    slide(page, "#sigma", "-2")  # 10 to the power of half of it
    answered(page, 2)
    assert page.locator("#sigma-said").text_content() == "0.1"
    assert bars(page) == shown(explained(0, sigma=0.1))
    page.locator("#method").select_option("clime")
    answered(page, 3)
    assert bars(page) == shown(explained(0, sigma=0.1, method="clime"))
    page.locator("#scale").select_option("ranks")
    answered(page, 4)
    assert bars(page) == shown(explained(0, sigma=0.1, method="clime", scale="ranks"))
    slide(page, "#rtol", "-1")
    answered(page, 5)
    assert bars(page) == shown(explained(0, sigma=0.1, method="clime", scale="ranks", rtol=0.1))
    page.locator("#target").select_option("interest rate")
    answered(page, 6)
    assert page.locator("#told").text_content().startswith("interest rate: f(x) = ")


def test_what_if_changes_the_row_and_says_what_that_does(opened, address):
    page = opened(address)
    answered(page)
    before = page.locator("#told").text_content()
    slide(page, "#features label:has-text('age') input", "30.2")  # whole years
    answered(page, 2)
    assert bars(page) == shown(explained(0, {"age": 30}))
    assert page.locator("#sentence").text_content().startswith("Your changes move it from 0.35 to ")
    page.locator("#features label:has-text('purpose') select").select_option("study")
    answered(page, 3)
    assert bars(page) == shown(explained(0, {"age": 30, "purpose": 2}))
    page.locator("#reset").click()
    answered(page, 4)
    assert page.locator("#told").text_content() == before
    assert bars(page) == shown(explained(0))


def test_controls_are_moved_by_keyboard(opened, address):
    page = opened(address)
    answered(page)
    page.locator("#features label:has-text('open loans') input").focus()
    page.keyboard.press("ArrowRight")
    answered(page, 2)
    assert bars(page) == shown(explained(0, {"open loans": 6}))
    page.locator("#after").press("Enter")
    answered(page, 3)
    assert bars(page) == shown(explained(1))


def test_methods_are_compared_and_the_verdict_is_that_of_agreement(opened, address):
    page = opened(address)
    page.wait_for_function("() => document.getElementById('verdict').className === 'verdict-yes'")
    assert "agree within" in page.locator("#verdict").text_content()
    assert len(bars(page, "smoothgrad")) == len(bars(page, "clime")) == 6
    page.locator("#target").select_option("interest rate")
    page.wait_for_function("() => document.getElementById('verdict').className === 'verdict-no'")
    assert "gradients are zero" in page.locator("#verdict").text_content()
    page.wait_for_function("() => document.getElementById('parts-said').textContent.includes('come from predictions')")
    assert len(bars(page, "parts")) == 8
    assert "which gradients do not see" in page.locator("#warnings").text_content()


def test_the_report_that_is_downloaded_is_that_of_the_row(opened, address):
    page = opened(address)
    answered(page)
    page.locator("#row").select_option("4")
    answered(page, 2)
    with page.expect_download() as found:
        page.locator("#report").click()
    with open(found.value.path(), encoding="utf-8") as file:
        expected = report_of([Part(explained(4, max_samples=65_536))], title="Loans, a made-up model: applicant 5")
        assert file.read() == expected


def slow_subject(pause=0.15):
    """A model that takes its time, and notes what it is asked."""
    rows = np.random.default_rng(0).normal(size=(8, 2))
    asked = []

    def model(a):
        asked.append(len(a))
        time.sleep(pause)
        return np.sin(2 * a[:, 0]) + np.sign(a[:, 1])

    return Subject(model, rows, rows, ("a", "b"), ("output",), title="Slow"), asked


def test_bars_settle_while_draws_come_in(serving, opened):
    subject, _ = slow_subject()
    address = serving(subject)
    page = opened(address)
    page.wait_for_function("() => document.querySelectorAll('#bars g.bar').length === 2")
    page.evaluate(
        """() => {
             window.seen = [];
             const told = document.getElementById('progress');
             new MutationObserver(() => seen.push(told.textContent)).observe(told, { childList: true });
           }"""
    )
    answered(page)
    told = [each for each in page.evaluate("() => seen") if "allowed" in each]
    assert len(told) >= 2
    draws = [int(re.match(r"[\d,]+", each)[0].replace(",", "")) for each in told]
    errors = [float(re.search(r"error ([\d.e-]+)", each)[1]) for each in told]
    assert draws == sorted(draws)
    assert errors[-1] < errors[0]


def test_dragging_asks_for_the_last_place_and_stops_the_others(serving, opened):
    subject, asked = slow_subject(0.05)
    address = serving(subject)
    page = opened(address)
    answered(page)
    asked.clear()
    for k in range(20):
        slide(page, "#sigma", str(-2 + k / 20))
        page.wait_for_timeout(30)
    answered(page, 2)
    spent = sum(asked)
    assert count(page) == 2  # those on the way were not finished
    assert page.locator("#sigma-said").text_content() == "0.3"
    e = sl.explain(subject.model, subject.rows[0], background=subject.rows, sigma=0.3, rtol=0.01, max_samples=65_536)
    assert bars(page) == shown(e)
    assert spent < 5 * int(e.n_evaluations[0])  # the server let go of the others, too


def test_a_model_that_raises_shows_its_error_as_text_and_the_page_goes_on(serving, opened):
    def model(a):
        if a[0, 0] > 0:
            raise RuntimeError("<img src=x onerror=alert(1)> no such place")
        return a[:, 0]

    rows = np.array([[-90.0, 0.0], [90.0, 0.1], [-80.0, 0.3]])
    address = serving(Subject(model, rows, rows, ("a", "b"), ("output",), title="Picky"))
    page = opened(address)
    answered(page)
    page.locator("#after").click()
    page.locator("#error").wait_for(state="visible")
    assert (page.locator("#told").text_content(), page.locator("#sentence").text_content()) == ("–", "")
    assert "RuntimeError" in page.locator("#error").text_content()
    assert "<img src=x onerror=alert(1)> no such place" in page.locator("#error").text_content()
    page.locator("#after").click()
    answered(page, 2)
    assert page.locator("#error").is_hidden()
    assert page.locator("img").count() == 0


def test_what_does_not_apply_is_not_there_and_a_slow_model_is_waited_for(serving, opened):
    held = threading.Event()

    def model(a):
        if a[0, 0] > 0:
            held.wait(10)
        return a[:, 0]

    rows = np.array([[-90.0, 0.0], [90.0, 0.1]])
    page = opened(serving(Subject(model, rows, rows, ("a", "b"), ("output",), title="Slow")))
    answered(page)
    page.wait_for_function("() => document.getElementById('verdict').textContent.startsWith('There is nothing')")
    assert page.locator("#pair").is_hidden()  # a function has no gradients
    assert page.locator("#target-label").is_hidden()  # one output
    page.locator("#after").click()
    page.wait_for_function("() => document.getElementById('progress').textContent === 'asking the model …'")
    assert "waiting" in page.locator("#bars").get_attribute("class")
    held.set()
    answered(page, 2)
    page.wait_for_function("() => !document.getElementById('bars').classList.contains('waiting')")
    assert page.locator("#told").text_content().startswith("output: f(x) = 90")


def test_the_sentence_says_where_a_step_up_leads(opened, address):
    page = opened(address)
    answered(page)
    e = explained(0)
    size = 0.5 * demo.applicants()[:, 0].std(ddof=1)
    assert f"{34.4 + size:.4g}" == f"{34.4 + e.std[0]:.4g}"
    assert page.locator("#sentence").text_content() == (
        f"The largest slope: one step up in income, from 34.4 to {34.4 + size:.4g}, lowers chance of default by"
        f" {of_row(e, 0).bars[0].text[1:]}."
    )


@pytest.mark.parametrize("sigma", [0.33, 250.0, 0.001])
def test_the_neighbourhood_that_was_asked_for_is_shown_at_first(visit, sigma):
    asked = []
    rows = np.random.default_rng(0).normal(size=(3, 2)) * 1e4
    subject = Subject(lambda a: a[:, 0] / 1e4, rows, None, ("a", "b"), ("output",), title="Wide")
    with contextlib.ExitStack() as stack:
        found = stack.enter_context(served(subject, sigma=sigma))
        page = visit(found, allowed=(found,))
        page.on("request", lambda request: request.url.endswith("explain") and asked.append(request.post_data_json))
        answered(page)
        assert page.locator("#sigma-said").text_content() == str(sigma).removesuffix(".0")
        page.locator("#after").click()
        answered(page, 2)
        page.locator("#sigma").press("ArrowRight")
        answered(page, 3)
        assert asked[0]["sigma"] == sigma
        assert sigma < asked[-1]["sigma"] < 1.2 * sigma
        page.context.close()


def test_names_that_look_like_markup_stay_text(serving, opened):
    rows = np.random.default_rng(0).normal(size=(4, 5))
    names, keys = samples.HOSTILE, samples.HOSTILE[:4]
    outputs = (f"risk {samples.HOSTILE[1]}",)
    subject = Subject(
        samples.HostileModel(), rows, rows, names, outputs, keys=keys, title=samples.HOSTILE[1],
        fixed=(), labels={},
    )  # fmt: skip
    address = serving(subject)
    page = opened(address)
    answered(page)
    assert page.locator("h1").text_content() == samples.HOSTILE[1]
    assert page.locator("script").count() == 4
    assert page.locator("img").count() == 0
    assert page.locator("#row option").all_text_contents() == list(keys)
    labels = [label for label, _ in bars(page)]
    assert any(label.startswith(samples.HOSTILE[3]) for label in labels)
    assert page.evaluate("() => window.broken === undefined")


def test_ten_tabs_at_once_are_all_answered(opened, address):
    pages = [opened(address) for _ in range(10)]
    for page in pages:
        slide(page, "#sigma", "-1")
    for page in pages:
        page.wait_for_function("() => document.getElementById('sigma-said').textContent === '0.32'")
        page.wait_for_function(
            "() => !document.querySelector('#parts.waiting') && document.querySelector('#parts svg')"
        )
    assert {tuple(bars(page)) for page in pages} == {tuple(shown(explained(0, sigma=0.32)))}


def test_a_tab_that_is_closed_leaves_the_server_to_the_others(serving, opened):
    subject, _ = slow_subject(0.1)
    address = serving(subject)
    first = opened(address)
    first.wait_for_function("() => document.body.dataset.asked")
    first.close()
    second = opened(address)
    answered(second)
    assert len(bars(second)) == 2


def test_a_wrong_token_and_a_foreign_host_are_refused(opened, address):
    origin, token = re.match(r"(http://[^/]+)/([^/]+)/", address).groups()
    other = token[:-1] + ("y" if token.endswith("x") else "x")
    for path in ("/", f"/{other}/", f"/{token[:-1]}/explain"):
        answer = httpx.post(origin + path) if path.endswith("explain") else httpx.get(origin + path)
        assert answer.status_code == 403
        assert token not in answer.text
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example"):
        answer = httpx.get(address, headers={"Host": host})
        assert answer.status_code == 403
        assert "Loans" not in answer.text
    foreign = {"Origin": "https://evil.example"}
    assert httpx.post(f"{address}explain", headers=foreign, json={}).status_code == 403
    page = opened(address)
    answered(page)
    assert page.evaluate("() => document.referrer") == ""


def test_a_server_that_has_ended_is_named(opened, visit):
    with served(demo.loans()) as address:
        page = opened(address)
        answered(page)
    slide(page, "#sigma", "0")
    page.locator("#error").wait_for(state="visible")
    assert "Is smoothlime still running?" in page.locator("#error").text_content()
    page.wait_for_timeout(100)
    assert [each for each in visit.complaints if "ERR_CONNECTION_REFUSED" not in each] == []
    visit.complaints.clear()  # the browser logs that itself


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(opened, address, serious_faults, scheme):
    page = opened(address, color_scheme=scheme)
    page.wait_for_function("() => document.querySelector('#pairs svg')")
    assert serious_faults(page) == []


def test_a_narrow_page_scrolls_down_only(opened, address):
    page = opened(address, viewport={"width": 360, "height": 700})
    page.wait_for_function("() => document.querySelector('#parts svg')")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360


def test_the_first_bars_come_soon_after_a_change(opened, address):
    page = opened(address)
    page.wait_for_function("() => document.querySelector('#parts svg')")
    waits = [
        page.evaluate(
            """place => new Promise((done) => {
                 const began = performance.now();
                 const watch = new MutationObserver(() => { watch.disconnect(); done(performance.now() - began); });
                 watch.observe(document.getElementById('bars'), { childList: true });
                 const slider = document.getElementById('sigma');
                 slider.value = place;
                 slider.dispatchEvent(new Event('input'));
               })""",
            place,
        )
        for place in ("-1", "-0.8", "-0.7", "-1.2", "-1.4")
    ]
    assert min(waits) < 300  # milliseconds; the machine may be busy now and then
