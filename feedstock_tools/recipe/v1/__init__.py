"""`recipe.yaml`, rendered by py-rattler-build and seen as conda-smithy sees it."""
