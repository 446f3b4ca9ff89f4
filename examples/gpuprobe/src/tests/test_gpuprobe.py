"""Does an installed gpuprobe do what it says? Run in the environment it is installed in: python test_gpuprobe.py"""

import json
import os
import subprocess
import sys
import unittest

import gpuprobe

TENSORFLOW_11_0 = ["sm_35", "sm_50", "sm_60", "sm_62", "sm_70", "sm_72", "sm_75", "sm_80", "compute_80"]


class Build(unittest.TestCase):
    def test_the_package_and_the_library_are_of_one_version(self):
        self.assertEqual(gpuprobe.__version__, gpuprobe.build_info().version)

    def test_it_was_built_for_what_was_meant(self):
        cuda = os.environ.get("GPUPROBE_EXPECT_CUDA")
        if cuda is None:
            self.skipTest("GPUPROBE_EXPECT_CUDA is not set")
        self.assertEqual(gpuprobe.build_info().cuda or "none", cuda)

    def test_a_gpu_build_names_architectures_and_a_cpu_build_does_not(self):
        info = gpuprobe.build_info()
        self.assertEqual(info.cuda is None, info.architectures == ())


class Machine(unittest.TestCase):
    def test_devices_are_found_or_it_is_said_why_not(self):
        report = gpuprobe.probe()
        self.assertEqual(report.driver.status == "found", bool(report.devices))
        self.assertEqual(report.driver.status == "found", report.driver.message is None)

    def test_the_module_prints_json_that_agrees_with_the_functions(self):
        output = subprocess.run([sys.executable, "-m", "gpuprobe", "--json"], stdout=subprocess.PIPE, check=True).stdout
        found = json.loads(output)
        self.assertEqual(found["build"]["cuda"], gpuprobe.build_info().cuda)
        self.assertEqual([device["name"] for device in found["devices"]], [device.name for device in gpuprobe.devices()])


class Matching(unittest.TestCase):
    def check(self, runs, architecture, *, cuda, capability, architectures, driver=None):
        found = gpuprobe.match(capability, cuda, architectures, driver)
        self.assertEqual((found.runs, found.architecture), (runs, architecture), found.reason)

    def test_machine_code_runs_on_the_same_and_later_minor_capabilities(self):
        self.check("native", "sm_75", cuda="11.0", capability=(7, 5), architectures=TENSORFLOW_11_0)
        self.check("native", "sm_80", cuda="11.0", capability=(8, 6), architectures=TENSORFLOW_11_0)
        self.check("no", None, cuda="11.2", capability=(8, 0), architectures=["sm_86"])

    def test_ptx_runs_on_every_later_capability(self):
        self.check("ptx", "compute_80", cuda="11.0", capability=(9, 0), architectures=TENSORFLOW_11_0)
        self.check("no", None, cuda="11.0", capability=(3, 0), architectures=TENSORFLOW_11_0)

    def test_machine_code_does_not_carry_over_to_tegra(self):
        self.check("ptx", "compute_80", cuda="11.4", capability=(8, 7), architectures=["sm_80", "sm_86", "compute_80"])
        self.check("native", "sm_87", cuda="11.4", capability=(8, 7), architectures=["sm_80", "sm_87"])

    def test_code_for_one_architecture_runs_on_that_one_only(self):
        self.check("native", "sm_90a", cuda="12.4", capability=(9, 0), architectures=["sm_90", "sm_90a"])
        self.check("no", None, cuda="12.8", capability=(10, 3), architectures=["sm_100a", "compute_100a"])

    def test_code_for_a_family_runs_on_its_later_members(self):
        self.check("native", "sm_100f", cuda="12.9", capability=(10, 3), architectures=["sm_100f"])
        self.check("no", None, cuda="12.9", capability=(12, 0), architectures=["sm_100f", "compute_100f"])

    def test_the_driver_bounds_what_runs(self):
        self.check("no", None, cuda="10.2", capability=(7, 5), architectures=["sm_75"], driver="10.1")
        self.check("native", "sm_75", cuda="11.2", capability=(7, 5), architectures=["sm_75"], driver="11.0")
        self.check("no", None, cuda="11.2", capability=(8, 6), architectures=["compute_75"], driver="11.1")
        self.check("ptx", "compute_75", cuda="11.2", capability=(8, 6), architectures=["compute_75"], driver="11.2")
        self.check("no", None, cuda="12.0", capability=(7, 5), architectures=["sm_75"], driver="11.8")

    def test_what_is_no_architecture_is_passed_over(self):
        self.check("native", "sm_75", cuda="11.2", capability=(7, 5), architectures=["sm_", "sm_75x", "gfx90a", "sm_75"])


if __name__ == "__main__":
    unittest.main()
