import type { Confirmation } from '@/lib/message';

type Props = {
  question: Pick<Confirmation, 'preview' | 'args'>;
  isDisabled?: boolean;
  decide: (approved: boolean) => void;
};

/** Nothing is done until the user has seen the exact arguments and approved them. */
export function Approval({ question, isDisabled, decide }: Props) {
  return (
    <div className="approval" role="group" aria-label="Approval needed">
      <p>{question.preview}</p>
      <dl>
        {Object.entries(question.args ?? {}).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{JSON.stringify(value)}</dd>
          </div>
        ))}
      </dl>
      <button type="button" disabled={isDisabled} onClick={() => decide(true)}>
        Approve
      </button>
      <button type="button" disabled={isDisabled} onClick={() => decide(false)}>
        Deny
      </button>
    </div>
  );
}
