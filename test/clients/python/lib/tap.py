"""Functions with which the Python tests print results in TAP."""

_count = 0


def ok(passed, what, found=""):
    global _count
    _count += 1
    print(f"{'ok' if passed else 'not ok'} {_count} - {what}")
    if not passed:
        print(f"# found: {found}"[:500])


def equal(found, expected, what):
    ok(found == expected, what, f"{found!r} instead of {expected!r}")


def done():
    print(f"1..{_count}")
