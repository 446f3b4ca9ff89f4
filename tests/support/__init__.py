"""What tests of several rooms share: places, the command line as a user calls it, small feedstocks and channels."""

import pytest

pytest.register_assert_rewrite("tests.support.feedstocks", "tests.support.waiting")
