"""From a spec to recipe files: `generating.generate` does it in one step, in steps that others use too."""
