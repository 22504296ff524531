"""A notification block for any address that Apprise knows, e-mail among them: its base cannot be saved."""

from prefect.blocks.notifications import AppriseNotificationBlock


class AppriseUrl(AppriseNotificationBlock):
    """Sends notifications to an Apprise URL, such as "mailtos://user:secret@example.org?to=night@example.org".

    Saved as "apprise-url/NAME". The URL may hold a password: Prefect keeps it encrypted.
    """

    _block_type_name = "Apprise URL"
    _block_type_slug = "apprise-url"
