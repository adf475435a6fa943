"""What a release is made and checked with: `make wheel test-wheel sbom audit release-check`."""
