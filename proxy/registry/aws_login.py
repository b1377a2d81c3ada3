"""Logs in to AWS by signing each request (Signature Version 4) with awscrt, on which AWS's own SDKs are built.

Like the SDKs, awscrt finds credentials in the environment, the shared files, a web identity (EKS), a container's
endpoint (ECS, EKS) and the instance's metadata. It refreshes them before they expire.
"""

from collections.abc import Mapping
from concurrent.futures import TimeoutError as NotInTime
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from io import BytesIO
from typing import Any

from sluicegate.proxy.registry.login import LoginMissing, OutgoingRequest

AWS_EXTRA = "pip install 'sluicegate[aws]'"


class AwsLogin:
    """A login for one service in one region."""

    keys = "region, the AWS credentials and their permissions"

    def __init__(self, region: str, service: str) -> None:
        self._region = region
        self._service = service
        # Created at the first request, because the library starts threads.
        self._credentials = cache(_default_chain)

    def headers(self, request: OutgoingRequest, seconds: float) -> Mapping[str, str]:
        """Return the headers to add. Blocks for at most `seconds`. Raises LoginMissing."""
        auth, http = _auth(), import_module("awscrt.http")
        given = [("Host", request.host), *request.headers.items()]
        names = {name.lower() for name, _ in given}
        unsigned = http.HttpRequest(request.method, request.path, http.HttpHeaders(given), BytesIO(request.body))
        try:
            config = auth.AwsSigningConfig(
                algorithm=auth.AwsSigningAlgorithm.V4,
                signature_type=auth.AwsSignatureType.HTTP_REQUEST_HEADERS,
                credentials_provider=self._credentials(),
                region=self._region,
                service=self._service,
                date=datetime.now(UTC),
            )
            signed = auth.aws_sign_request(unsigned, config).result(seconds)
        except NotInTime:
            raise LoginMissing(f"no AWS credentials within {seconds:.0f} s") from None
        except Exception as error:  # the library raises errors of several kinds
            reason = getattr(error, "name", type(error).__name__)
            raise LoginMissing(
                f"no AWS credentials ({reason}): set them in the environment or in AWS's files"
            ) from error
        return {name: value for name, value in signed.headers if name.lower() not in names}

    def on_rejection(self) -> None:
        """Look for credentials again at the next request."""
        self._credentials.cache_clear()


def _default_chain() -> Any:
    return _auth().AwsCredentialsProvider.new_default_chain()


def _auth() -> Any:
    try:
        return import_module("awscrt.auth")
    except ImportError:
        raise LoginMissing(f"type: glue with a region needs awscrt: {AWS_EXTRA}") from None
