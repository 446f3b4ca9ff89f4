"""What tests of several rooms share: places, the command line as a user calls it, small feedstocks and channels."""

import sys

if "pytest" in sys.modules:  # programs that tests start have no use for it, and importing it takes long
    sys.modules["pytest"].register_assert_rewrite("tests.support.feedstocks", "tests.support.waiting")
